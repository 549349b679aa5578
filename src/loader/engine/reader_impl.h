/* SPDX-License-Identifier: MIT */
/*
 * The reader fills originals with encoded bytes, first those that planned
 * servings wait for. It chooses reads at the end of a turn, and they begin
 * after the lock was released. Every function needs the turn's lock unless its
 * comment says otherwise.
 */
#ifndef ENGINE_READER_IMPL_H
#define ENGINE_READER_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/core/memory.h"
#include "loader/core/turn.h"
#include "common/base/uring.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/engine_parts_impl.h"
#include "loader/engine/meter.h"
#include "loader/engine/planner_impl.h"
#include "loader/mount_help/mount_help.h"
#include "loader/engine/pool_impl.h"
#include "loader/core/settings.h"

struct reader;
struct read_op;

/* -- Creation and end; only reader_cpu_ns() needs the lock ----------------- */

/* Returns 0 or -ENOMEM. Free *out after a failure, too. */
int reader_new(struct reader **out, const struct engine_parts *parts);
void reader_free(struct reader *reader); /* NULL is allowed */
/* Returns the bytes that a reader needs for this number of reads at a time. */
uint64_t reader_bytes(uint32_t reads);
/* Start the reader's threads. Returns 0, or -errno with err set. */
int reader_start(struct reader *reader, struct error *err);
/* End all reads. Call this after outcome_close(). Returns how many reads hang
 * and are left behind. */
uint32_t reader_stop(struct reader *reader, uint64_t wait_ns);
/* Returns the ring. Call this after reader_start(). */
struct uring *reader_ring(const struct reader *reader);
/* Returns the CPU time of the reader's threads so far, in ns. Needs the
 * lock. */
uint64_t reader_cpu_ns(const struct reader *reader);

/* -- Turns -- */

/* Choose the reads that may begin now. */
void reader_pump(struct reader *reader);
/* Returns the chosen reads, which must be passed to reader_begin(), or NULL. */
struct read_op *reader_take(struct reader *reader);
/* Start these reads. Call this without the lock, once for each result of
 * reader_take() that is not NULL. Returns true if no other thread is starting
 * reads now. */
bool reader_begin(struct reader *reader, struct read_op *first);
/* Are more reads waiting than may run at a time? */
bool reader_is_full(const struct reader *reader);

#endif

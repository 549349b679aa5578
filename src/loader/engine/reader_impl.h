/* SPDX-License-Identifier: MIT */
/*
 * The reader fills originals with encoded bytes, beginning with those that
 * planned servings wait for. It chooses reads at the end of a turn; they begin
 * when the lock has been released. Every function needs the turn's lock unless
 * its comment says otherwise.
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

/* -- Life; without the lock, except reader_cpu_ns() -- */

/* Returns -ENOMEM. Free *out after a failure, too. */
int reader_new(struct reader **out, const struct engine_parts *parts);
void reader_free(struct reader *reader); /* NULL is allowed */
/* The memory of a reader with so many reads at a time. */
uint64_t reader_bytes(uint32_t reads);
/* Start the reader's threads. Returns -errno with err set. */
int reader_start(struct reader *reader, struct error *err);
/* End all reads, after outcome_close(). Returns how many were left behind. */
uint32_t reader_stop(struct reader *reader, uint64_t wait_ns);
/* The ring, once the reader has been started. */
struct uring *reader_ring(const struct reader *reader);
/* CPU time of the reader's threads so far. Needs the lock. */
uint64_t reader_cpu_ns(const struct reader *reader);

/* -- Turns -- */

/* Choose what may be read now. */
void reader_pump(struct reader *reader);
/* Take the chosen reads, to be passed to reader_begin(); NULL if there are
 * none. */
struct read_op *reader_take(struct reader *reader);
/* Start these reads. Called without the lock, once for each reader_take() that
 * returned some. Returns true if no other thread is starting reads now. */
bool reader_begin(struct reader *reader, struct read_op *first);
/* Are more reads waiting than may run at a time? */
bool reader_is_full(const struct reader *reader);

#endif

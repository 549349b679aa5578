/* SPDX-License-Identifier: MIT */
/*
 * A trace of the READs of a mount. Each thread that answers READs records them
 * in a ring of its own, and one thread, the tracer, takes them out. A thread
 * never waits for the tracer: a record for which its ring has no room is lost
 * and counted. Without a tracer the rings use no memory.
 *
 * A READ of several items has a record for each, as it has in the histograms.
 *
 * A process may end right after its READ. Therefore the thread that answers the
 * READ looks its name up, once a second for each reader.
 */
#ifndef BASE_READ_TRACE_H
#define BASE_READ_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/latency.h"

/* Number of records that one ring holds. */
#define READ_TRACE_RECORDS 4096u

/* The `source` of a READ that has failed. All other READs have one of
 * LATENCY_TIER to LATENCY_ORIGIN. */
#define READ_TRACE_FAILED LATENCY_WAIT

/* Returns the name of a source, such as "tier". */
const char *read_trace_source(enum latency_kind source);

struct read_record {
	uint64_t end_ns; /* time at which the READ ended, by clock_now_ns() */
	uint64_t ns;	 /* duration of the READ */
	uint64_t node;	 /* number of the file */
	uint64_t off;	 /* offset in the file */
	uint32_t len;
	pid_t thread; /* thread that reads; 0: unknown */
	enum latency_kind source;
};

/* Names of processes have at most 15 bytes. */
#define READ_TRACE_NAME_MAX 16

/* A thread that reads, and its process. */
struct read_thread {
	pid_t thread, process;
	char program[READ_TRACE_NAME_MAX];
};

struct read_trace;

/* Returns 0 or -ENOMEM. */
int read_trace_new(struct read_trace **out);
/* Free the trace, which no thread may use any more. NULL is allowed. */
void read_trace_free(struct read_trace *t);

/* Note who reads. Call this while a READ of the thread is not answered, without
 * a lock: it may read /proc. A thread of which no process is known is not
 * noted. */
void read_trace_meet(struct read_trace *t, pid_t thread, uint64_t now_ns);

/* Record a READ, unless it took less than the tracer wants. Any thread. */
void read_trace_add(struct read_trace *t, const struct read_record *record);

/* -- The tracer, of which there is at most one at a time ------------------- */

/* Begin with empty rings. READs of less than slow_ns are not recorded. */
void read_trace_begin(struct read_trace *t, uint64_t slow_ns);
/* Take up to `max` records. If they are all records, they are in the order in
 * which the READs ended. Adds to *lost the records lost since the last call. */
size_t read_trace_take(struct read_trace *t, struct read_record *out,
	size_t max, uint64_t *lost);
/* Is this a note of read_trace_meet() in place of a READ? Then it comes before
 * the READs of the thread, nearly always. */
bool read_trace_met(const struct read_record *r, struct read_thread *out);
/* Give the memory of the rings back. */
void read_trace_end(struct read_trace *t);

#endif

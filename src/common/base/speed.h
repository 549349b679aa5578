/* SPDX-License-Identifier: MIT */
/*
 * Measures how fast an origin answers while it is busy: while at least `depth`
 * requests are in flight or queued. A period in which this is true is called a
 * *run*.
 *
 * The answers of a distant origin come in groups. So a measurement begins at
 * one answer and ends `depth` answers later: at its beginning `depth` requests
 * are in flight, and the youngest of them is sent at that moment, so the
 * measurement ends with the answer to that request. It takes one latency or
 * more, and in that time the origin answers `depth` requests, no matter how it
 * groups the answers.
 *
 * Storage that was idle may have saved up credit, like a throttle that saves up
 * tokens, and answers faster until it has used up the credit. So only
 * measurements that begin at least SPEED_SAVED_NS after the start of their run
 * count for the origin's lasting speed.
 *
 * Only one thread at a time may write. The sums only grow, and any thread may
 * read them at any time.
 */
#ifndef BASE_SPEED_H
#define BASE_SPEED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

#define SPEED_SAVED_NS (150 * NS_PER_MS)

struct speed {
	_Atomic uint64_t full_ns, full_bytes; /* sums of all measurements */
	/* the measurements at the lasting speed */
	_Atomic uint64_t long_ns, long_bytes;
	_Atomic uint64_t runs; /* number of runs that have begun */
	_Atomic bool running;  /* a run is going on */
	/* Only the writer uses these. */
	uint64_t run_ns; /* time at which the run began */
	/* time at which the measurement began, and bytes since then */
	uint64_t mark_ns, mark_bytes;
	/* answers until the measurement ends; 0: there is none */
	uint64_t left;
};

/* Bytes that have arrived: an answer, or a part of one. */
struct speed_answer {
	uint64_t now_ns, bytes;
	bool answered;
	uint64_t more;	/* number of requests that are in flight or queued */
	uint32_t depth; /* number of requests in flight at a time; 0: unknown */
};

void speed_note(struct speed *s, const struct speed_answer *a);

/* Note that no request is left. Drops the current measurement, because it would
 * include idle time. */
void speed_stop(struct speed *s);

#endif

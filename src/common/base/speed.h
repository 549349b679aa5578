/* SPDX-License-Identifier: MIT */
/*
 * How fast an origin answers while it is kept busy: while at least `depth`
 * requests are out or queued. A *run* is a period in which that holds.
 *
 * The answers of a distant origin come in groups. So a measurement begins at
 * one answer and ends `depth` answers later: at its beginning `depth` requests
 * are out, and the youngest of them is sent at that moment, so its end is that
 * request's answer. The time is one latency or more, and `depth` requests were
 * answered in it, however they were grouped.
 *
 * Storage that was idle may have saved up work, as a throttle saves up tokens,
 * and does that at once. Only measurements that begin SPEED_SAVED_NS after
 * their run count as the origin's lasting speed.
 *
 * One writer at a time; the sums only grow and may be read at any time.
 */
#ifndef BASE_SPEED_H
#define BASE_SPEED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

#define SPEED_SAVED_NS (150 * NS_PER_MS)

struct speed {
	_Atomic uint64_t full_ns, full_bytes; /* measured */
	_Atomic uint64_t long_ns, long_bytes; /* the lasting speed's part */
	_Atomic uint64_t runs;		      /* how many have begun */
	_Atomic bool running;		      /* a run goes on */
	/* Private to the writer. */
	uint64_t run_ns;	      /* when the run began */
	uint64_t mark_ns, mark_bytes; /* the measurement: begin, bytes since */
	uint64_t left;		      /* answers to its end; 0: there is none */
};

/* Bytes came; `answered`: they complete a request. */
struct speed_answer {
	uint64_t now_ns, bytes;
	bool answered;
	uint64_t more;	/* requests that are out or queued */
	uint32_t depth; /* requests out at a time; 0: not known */
};

void speed_note(struct speed *s, const struct speed_answer *a);

/* No request is left: what is being measured would include idle time. */
void speed_stop(struct speed *s);

#endif

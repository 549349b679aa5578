/* SPDX-License-Identifier: MIT */
/*
 * How fast an origin answers while it is kept busy: while at least `depth`
 * requests are out or queued. A *run* is a period in which that is so.
 *
 * The answers of a distant origin come in groups. So a measurement begins at
 * one answer and ends `depth` answers later: at its beginning `depth` requests
 * are out, and the youngest of them is sent at that moment, so the measurement
 * ends with the answer to that request. It takes one latency or more, and the
 * origin answers `depth` requests in that time, however it groups them.
 *
 * Storage that was idle may have saved up credit, as a throttle saves up
 * tokens, and answers faster until it has used the credit. Only measurements
 * that begin at least SPEED_SAVED_NS after the start of their run count as the
 * origin's lasting speed.
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
	_Atomic uint64_t full_ns, full_bytes; /* sums of all measurements */
	/* the part at the lasting speed */
	_Atomic uint64_t long_ns, long_bytes;
	_Atomic uint64_t runs; /* number of runs begun */
	_Atomic bool running;  /* a run is going on */
	/* Private to the writer. */
	uint64_t run_ns; /* when the run began */
	/* begin of the measurement, bytes since */
	uint64_t mark_ns, mark_bytes;
	uint64_t left; /* answers until it ends; 0: there is no measurement */
};

/* Bytes that came as an answer, or as a part of one. */
struct speed_answer {
	uint64_t now_ns, bytes;
	bool answered;
	uint64_t more;	/* requests that are out or queued */
	uint32_t depth; /* requests out at a time; 0: unknown */
};

void speed_note(struct speed *s, const struct speed_answer *a);

/* No request is left. The measurement is dropped, since it would include idle
 * time. */
void speed_stop(struct speed *s);

#endif

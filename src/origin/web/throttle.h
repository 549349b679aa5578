/* SPDX-License-Identifier: MIT */
/* Controls the number of requests in flight at a server that sometimes refuses
 * requests because it is busy. The caller does the locking. */
#ifndef WEB_THROTTLE_H
#define WEB_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

struct throttle {
	/* maximum number of requests in flight: the highest, and the current
	 * one */
	unsigned most, depth;
	/* Numbers of answers since the depth last fell: successful ones, and
	 * refusals. */
	unsigned answers, refusals;
	/* number of successful answers since the depth last grew */
	unsigned credit;
	uint64_t cut_ns; /* time at which the depth last fell */
};

void throttle_init(struct throttle *t, unsigned most);

/* Note that the server has refused a request because it is busy. The depth
 * falls at most once in round_ns, the duration of a request. Returns true if it
 * fell. */
bool throttle_refused(struct throttle *t, uint64_t now_ns, uint64_t round_ns);

/* Note that the server has answered a request, so that the depth may grow
 * again. */
void throttle_answered(struct throttle *t);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Controls the number of requests in flight at a server that sometimes refuses
 * requests because it is busy. The caller does the locking.
 */
#ifndef WEB_THROTTLE_H
#define WEB_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

struct throttle {
	/* requests in flight: the limit, and the current one */
	unsigned most, depth;
	/* Answers since the depth last fell: good ones, and refusals. */
	unsigned answers, refusals;
	unsigned credit; /* good answers since the depth last grew */
	uint64_t cut_ns; /* time when the depth last fell */
};

void throttle_init(struct throttle *t, unsigned most);

/*
 * The server refused a request because it is busy. The depth falls at most once
 * in round_ns, the time of a request. Returns true if it fell.
 */
bool throttle_refused(struct throttle *t, uint64_t now_ns, uint64_t round_ns);

/* The server answered a request, so the depth may recover. */
void throttle_answered(struct throttle *t);

#endif

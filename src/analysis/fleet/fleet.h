/* SPDX-License-Identifier: MIT */
/* All refrain mounts that this process can see, asked at once. A mount that is
 * dead or hangs delays the others by at most the time limit of a look; if it
 * hung before, it does not delay them at all. The process must have only one
 * thread, because calls that may hang are made in child processes. */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/err.h"

/* The time limit of a look. Commands that use it have to answer within 1 s. */
#define FLEET_TIMEOUT_MS 900

enum fleet_state {
	FLEET_UP,   /* it has answered */
	FLEET_HUNG, /* it does not answer: it is stopped, or hangs */
	FLEET_DEAD, /* its daemon has ended */
	/* it cannot be asked, for example because it belongs to another user */
	FLEET_REFUSED,
};

/* Returns the name of a state, such as "up". */
const char *fleet_state_name(enum fleet_state state);

/* A mount. Its members are valid until the next look. */
struct fleet_mount {
	const char *mountpoint; /* path in the kernel's list */
	enum fleet_state state;
	const json_t *status; /* its status; NULL unless FLEET_UP */
	const json_t *before; /* its status in the look before, or NULL */
	uint64_t status_ns;   /* time at which the status came */
	uint64_t elapsed_ns;  /* time between both statuses */
	uint64_t silent_ns;   /* FLEET_HUNG: time since it was asked */
	/* the reason why it is not up, and what to do; or "" */
	const char *why;
};

struct fleet;

/* Create a fleet that has found no mounts yet. Returns 0 or -ENOMEM. */
int fleet_new(struct fleet **out);
void fleet_free(struct fleet *fleet); /* NULL is allowed */

/* Find all mounts and ask each for its status. Takes up to timeout_ms. Returns
 * 0, or -errno if the kernel's list of mounts cannot be read. */
int fleet_look(struct fleet *fleet, unsigned timeout_ms, struct error *err);

/* Returns the number of mounts that the last look has found; they are in the
 * order of the kernel's list. */
size_t fleet_count(const struct fleet *fleet);
struct fleet_mount fleet_get(const struct fleet *fleet, size_t i);

#endif

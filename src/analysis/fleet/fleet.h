/* SPDX-License-Identifier: MIT */
/*
 * All refrain mounts that this process can see, asked at once. A dead or a hung
 * mount delays the others by no more than the time limit of a look, and one
 * that was hung already delays them by nothing. One thread; the process must
 * have no other, because calls that may hang are made in children.
 */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/err.h"

/* The time limit of a look, for commands that are to answer within 1 s. */
#define FLEET_TIMEOUT_MS 900

enum fleet_state {
	FLEET_UP,      /* it has answered */
	FLEET_HUNG,    /* no answer: it is stopped, or hangs */
	FLEET_DEAD,    /* its daemon has ended */
	FLEET_REFUSED, /* it cannot be asked: another user's, for example */
};

/* The name of a state: "up". */
const char *fleet_state_name(enum fleet_state state);

/* A mount; valid until the next look. */
struct fleet_mount {
	const char *mountpoint; /* as the kernel knows it */
	enum fleet_state state;
	const json_t *status; /* the object of its status; NULL unless up */
	const json_t *before; /* that of the look before, or NULL */
	uint64_t status_ns;   /* when the status came */
	uint64_t elapsed_ns;  /* between both */
	uint64_t silent_ns;   /* hung: time since it was asked */
	const char *why;      /* why it is not up, and what to do; or "" */
};

struct fleet;

/* Create a fleet that has found no mounts yet. Returns 0 or -ENOMEM. */
int fleet_new(struct fleet **out);
void fleet_free(struct fleet *fleet); /* NULL is allowed */

/* Find all mounts and ask each for its status; takes up to timeout_ms. Returns
 * -errno if the kernel's list of mounts cannot be read. */
int fleet_look(struct fleet *fleet, unsigned timeout_ms, struct error *err);

/* The mounts that the last look has found, in the order of the kernel. */
size_t fleet_count(const struct fleet *fleet);
struct fleet_mount fleet_get(const struct fleet *fleet, size_t i);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The source of a mount, and the stack of origins that reads it: the origin of
 * its scheme at the bottom, above it perhaps the names of an index and faults
 * for drills, at the top retries.
 */
#ifndef STACK_STACK_H
#define STACK_STACK_H

#include <stdbool.h>

#include "base/counters.h"
#include "base/err.h"
#include "base/events.h"
#include "base/timer.h"
#include "manifest/manifest.h"
#include "origin/origin.h"

/* The caller owns the strings, and keeps them as long as the stack. */
struct stack_config {
	const char *name;   /* as typed; may be a relative path */
	unsigned timeout_s; /* time limit of a request */
	/* For remote sources; the environment supplies the rest. */
	const char *endpoint_url, *region, *profile; /* or NULL */
	bool no_sign_request, requester_pays, insecure_tls, http2;
	const char *manifest; /* index of the source's names, or NULL */
	const char *fault;    /* spec of the fault origin, or NULL */
};

struct stack;

/*
 * Resolve the source's name, and that of its index; call it before there are
 * threads. `kept`: its names are in a tier, so a path that does not answer is
 * used unseen. On failure returns -errno with err set.
 */
int stack_new(struct stack **out, const struct stack_config *config, bool kept,
	struct error *err);
/* Needs no stack_close() before it if stack_open() has failed. NULL is allowed.
 */
void stack_free(struct stack *s);

/* The dataset as tiers record it. */
const char *stack_name(const struct stack *s);
/* It is a path that did not answer. */
bool stack_unreached(const struct stack *s);
/* It is a path, and this one is that or lies below it. */
bool stack_contains(const struct stack *s, const char *path);

/* Open the origins; what is given outlives them. -errno with err set. */
int stack_open(struct stack *s, struct timers *timers,
	struct counters *counters, const struct event_sink *events,
	struct error *err);
/* False: a request hangs, and the origins cannot be freed. */
bool stack_close(struct stack *s);
/* The outermost one. */
struct origin *stack_origin(const struct stack *s);

/*
 * Check at the start whether a source far away can be read, which may take
 * seconds; or that its index can, and fits it. Not if the manifest, which
 * outlives the origins, has the names already. -errno with err set.
 */
int stack_probe(struct stack *s, struct manifest *manifest, struct error *err);

/* The manifest's names are of another index; then that they have been listed.
 * One thread. */
bool stack_must_relist(const struct stack *s);
void stack_listed(struct stack *s);

/* Other faults from now on. -ENOENT: the stack has no origin for faults;
 * -EINVAL: the spec is malformed; err is set. */
int stack_fault(struct stack *s, const char *spec, struct error *err);
/* The faults in force, to be freed; NULL: there is no origin for them. */
char *stack_faults(struct stack *s);

#endif

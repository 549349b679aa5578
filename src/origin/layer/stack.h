/* SPDX-License-Identifier: MIT */
/*
 * The source of a mount, and the stack of origins that reads it: at the bottom
 * the origin of its scheme, above it optionally names from an index and faults
 * for drills, at the top retries.
 */
#ifndef LAYER_STACK_H
#define LAYER_STACK_H

#include <stdbool.h>

#include "common/base/attr.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/timer.h"
#include "origin/origin.h"

/* The caller owns the strings and keeps them until the stack is freed. */
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
 * threads. With `kept`, a tier has the names of the source, so a path that does
 * not answer is accepted unchecked, and credentials may be missing for a while.
 * On failure returns -errno with err set.
 */
int stack_new(struct stack **out, const struct stack_config *config, bool kept,
	struct error *err);
/* NULL is allowed. After stack_open() has failed, call this without
 * stack_close(). */
void stack_free(struct stack *s);

/* The canonical name of the source; and the name of its dataset as tiers record
 * it, which also names the store of an S3 bucket that is not in AWS. */
const char *stack_name(const struct stack *s);
const char *stack_dataset(const struct stack *s);
/* Is the source a path that did not answer? */
bool stack_unreached(const struct stack *s);
/* Is the source a path, and is `path` the same or below it, maybe by a bind
 * mount? */
bool stack_contains(const struct stack *s, const char *path);
/* Is the source a path below `path`? */
bool stack_is_inside(const struct stack *s, const char *path);

/* Open the origins. The arguments outlive them. Returns 0, or -errno with err
 * set. */
int stack_open(struct stack *s, struct timers *timers,
	struct counters *counters, const struct event_sink *events,
	struct error *err);
/* Returns false if a request hangs, so that the origins cannot be freed. */
bool stack_close(struct stack *s);
/* The outermost origin. */
struct origin *stack_origin(const struct stack *s);
/* Does the source answer? Any thread. */
void stack_health(const struct stack *s, struct origin_health *health);

/* The names that the mount knows, so that origins need not ask for them. */
struct stack_names {
	/* The attributes of a path; false if it is unknown. */
	bool (*known)(void *arg, const char *path, struct file_attr *attr);
	/* The attributes of the root; false if it has not been listed. */
	bool (*root)(void *arg, struct file_attr *attr);
	void (*put_root)(void *arg, const struct file_attr *attr);
	void *arg; /* outlives the origins */
};

/*
 * Check at the start that a remote source can be read, which may take seconds,
 * or that its index can be read and matches it. Does nothing if the names are
 * known. Returns 0, or -errno with err set.
 */
int stack_probe(
	struct stack *s, const struct stack_names *names, struct error *err);

/* Were the mount's names read from another index? Call stack_listed() when they
 * have been listed again. One thread. */
bool stack_must_relist(const struct stack *s);
void stack_listed(struct stack *s);

/* Change the injected faults. -ENOENT: the stack has no fault origin; -EINVAL:
 * the spec is malformed. Sets err. */
int stack_fault(struct stack *s, const char *spec, struct error *err);
/* The current faults, or NULL if there is no fault origin. The caller frees
 * them. */
char *stack_faults(struct stack *s);

#endif

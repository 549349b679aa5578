/* SPDX-License-Identifier: MIT */
/* The source of a mount, and the stack of origins that reads it. At the bottom
 * is the origin of the source's scheme, at the top the one that repeats failed
 * requests. Between them may be an origin that takes names from an index, one
 * that shows levels of JPEGs, and one that injects faults for drills. */
#ifndef LAYER_STACK_H
#define LAYER_STACK_H

#include <stdbool.h>

#include "common/base/attr.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/timer.h"
#include "origin/origin.h"

/* The strings belong to the caller, and must exist until the stack is freed. */
struct stack_config {
	const char *name;   /* the source, as typed; may be a relative path */
	unsigned timeout_s; /* time limit of a request */
	/* For remote sources; a NULL means that the environment decides. */
	const char *endpoint_url, *region, *profile; /* may be NULL */
	bool no_sign_request, requester_pays, insecure_tls, http2;
	const char *manifest; /* path or URL of an index of names, or NULL */
	unsigned drop_bits;   /* show levels of JPEGs that lack these; 0: no */
	/* Path or URL of an index with levels. NULL: that of `manifest`, else
	 * the file recode.index of the source. */
	const char *levels;
	const char *fault; /* faults for origin_fault_new(), or NULL */
};

struct stack;

/* Resolve the source's name, and that of its index; call this before there are
 * threads. `kept`: a tier has saved the names of the source. In this case a
 * path that does not answer is accepted without a check, and credentials may be
 * missing for a while. Returns 0, or -errno with err set. */
int stack_new(struct stack **out, const struct stack_config *config, bool kept,
	struct error *err);
/* Free the stack. NULL is allowed. If stack_open() has failed, call this
 * without stack_close(). */
void stack_free(struct stack *s);

/* stack_name() returns the canonical name of the source. The other function
 * returns the name of the dataset as tiers record it; if an S3 bucket is not in
 * AWS, this name also contains its store. */
const char *stack_name(const struct stack *s);
const char *stack_dataset(const struct stack *s);
/* Is the source a path that did not answer? */
bool stack_unreached(const struct stack *s);
/* Is the source a path, and is `path` the same directory or below it, maybe by
 * a bind mount? */
bool stack_contains(const struct stack *s, const char *path);
/* Is the source a path below `path`? */
bool stack_is_inside(const struct stack *s, const char *path);

/* Open the origins. The arguments must outlive them. Returns 0, or -errno with
 * err set. */
int stack_open(struct stack *s, struct timers *timers,
	struct counters *counters, const struct event_sink *events,
	struct error *err);
/* Close the origins. Returns false if a request hangs, so that the origins
 * cannot be freed. */
bool stack_close(struct stack *s);
/* Returns the outermost origin. */
struct origin *stack_origin(const struct stack *s);
/* Does the source answer? Any thread. */
void stack_health(const struct stack *s, struct origin_health *health);

/* Functions that read the names of the mount, so that origins need not ask for
 * these names. */
struct stack_names {
	/* Get the attributes of a path. Returns false if the path is unknown.
	 */
	bool (*known)(void *arg, const char *path, struct file_attr *attr);
	/* Get the attributes of the root. Returns false if the root has not
	 * been listed. */
	bool (*root)(void *arg, struct file_attr *attr);
	void (*put_root)(void *arg, const struct file_attr *attr);
	void *arg; /* must outlive the origins */
};

/* Check at the start whether a remote source can be read, which may take
 * seconds. If there is an index, check that it can be read and matches the
 * source. Does nothing if the names are known. Returns 0, or -errno with err
 * set. */
int stack_probe(
	struct stack *s, const struct stack_names *names, struct error *err);

/* Are the names that a tier has saved those of another level? Then they must
 * not be used. `root` is the saved version of the root. */
bool stack_is_other_level(
	const struct stack *s, const struct file_version *root);

/* Were the names of the mount read from an index that has changed since? If so,
 * list them again, and then call stack_listed(). One thread. */
bool stack_must_relist(const struct stack *s);
void stack_listed(struct stack *s);

/* Change the injected faults. Returns 0, -ENOENT if the stack has no fault
 * origin, or -EINVAL if the spec is malformed. Sets err. */
int stack_fault(struct stack *s, const char *spec, struct error *err);
/* Returns the current faults, which the caller frees; NULL if there is no fault
 * origin. */
char *stack_faults(struct stack *s);

#endif

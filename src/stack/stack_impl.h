/* SPDX-License-Identifier: MIT */
/* Inside the stack of origins. */
#ifndef STACK_STACK_IMPL_H
#define STACK_STACK_IMPL_H

#include <pthread.h>
#include <stdint.h>

#include "stack/stack.h"

struct stack {
	struct stack_config config; /* set once */
	char *name;		    /* set once */
	bool unreached;		    /* set once */
	/* Set once, by stack_open(). */
	struct counters *counters;
	const struct event_sink *events;
	struct origin *top;    /* the outermost origin */
	struct origin *fault;  /* of drills, or NULL */
	struct origin *remote; /* at the bottom, if it is far away */
	struct origin *named;  /* above it, with an index of names */
	struct manifest *manifest;
	pthread_mutex_t lock;
	char *faults; /* those in force; lock */
	/* Of the index: set once before there are threads, then the scan's. */
	char *index;	    /* its path or URL; absolute */
	uint64_t index_tag; /* hash64() of its text; 0: not known */
	bool relist;	    /* the manifest's names are of another index */
};

#ifdef HAVE_REMOTE
struct remote_config;
void stack_remote_config(const struct stack *s, struct remote_config *config);
#endif

/*
 * given.c: names from an index. Put an origin with those names above `o`; see
 * at the start whether they are known, or can be read and fit the source.
 * -errno with err set.
 */
int given_open(struct stack *s, struct origin **o, struct error *err);
int given_check(struct stack *s, struct error *err);

/*
 * reach.c: wait until a directory answers. -ETIMEDOUT after timeout_s seconds;
 * any answer will do, a failure too. Says so when it takes long. With `kept`
 * it waits 3 s at most, and *path, to be freed, is then the directory's path,
 * of which links are resolved as far as anything answers; NULL: not known.
 */
int reach_directory(const char *source, unsigned timeout_s, bool kept,
	char **path, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by the files of the stack: its struct, and the functions of
 * given_names.c and reachable.c. */
#ifndef LAYER_STACK_IMPL_H
#define LAYER_STACK_IMPL_H

#include <pthread.h>
#include <stdint.h>

#include "common/base/magic.h"
#include "origin/layer/stack.h"

struct stack {
	uint32_t magic;
	struct stack_config config; /* set once */
	char *name;		    /* set once */
	char *dataset;		    /* set once */
	bool unreached;		    /* set once */
	bool kept;		    /* its names are in a tier; set once */
	/* Set once, by stack_open(). */
	struct counters *counters;
	const struct event_sink *events;
	struct origin *top;	  /* the outermost origin */
	struct origin *fault;	  /* of drills, or NULL */
	struct origin *remote;	  /* at the bottom, if it is far away */
	struct origin *named;	  /* above it, with an index of names */
	struct stack_names names; /* by stack_probe() */
	pthread_mutex_t lock;
	char *faults; /* those in force; lock */
	/* The index of names: set before there are threads, then used by the
	 * scan only. */
	char *index;	    /* its path or URL; absolute */
	uint64_t index_tag; /* hash64() of its text; 0: not known */
	bool relist;	    /* the mount's names are of another index */
};

#ifdef HAVE_REMOTE
struct object_config;
void stack_remote_config(const struct stack *s, struct object_config *config);
#endif

/*
 * given_names.c: names from an index. given_open() puts an origin with those
 * names above `o`. given_check() checks at the start that the names are known,
 * or that the index can be read and matches the source. -errno with err set.
 */
int given_open(struct stack *s, struct origin **o, struct error *err);
int given_check(struct stack *s, struct error *err);

/*
 * reachable.c: wait until a directory answers. -ETIMEDOUT after timeout_s
 * seconds; any answer counts, even a failure. Prints a message if it takes
 * long. With `kept` it waits at most 3 s, and sets *path, to be freed, to the
 * directory's path with links resolved as far as the storage answers; NULL if
 * unknown.
 */
int reach_directory(const char *source, unsigned timeout_s, bool kept,
	char **path, struct error *err);

#endif

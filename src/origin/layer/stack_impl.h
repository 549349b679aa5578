/* SPDX-License-Identifier: MIT */
/* Struct stack, and the functions of given_names.c and reachable.c. */
#ifndef LAYER_STACK_IMPL_H
#define LAYER_STACK_IMPL_H

#include <pthread.h>
#include <stdint.h>

#include "common/base/magic.h"
#include "origin/layer/stack.h"

/* Name of the index with levels in a dataset that `refrain recode` wrote. */
#define LEVELS_NAME "recode.index"

struct stack {
	uint32_t magic;
	struct stack_config config; /* set once */
	char *name;		    /* set once */
	char *dataset;		    /* set once */
	bool unreached;		    /* set once */
	bool kept; /* a tier has saved the names of the source; set once */
	/* Set once, by stack_open(). */
	struct counters *counters;
	const struct event_sink *events;
	struct origin *top;    /* the outermost origin */
	struct origin *fault;  /* the fault origin for drills, or NULL */
	struct origin *remote; /* the bottom origin, if it is remote */
	/* the origin that takes names from an index, or NULL */
	struct origin *named;
	struct stack_names names; /* set by stack_probe() */
	pthread_mutex_t lock;
	char *faults; /* the current faults; guarded by the lock */
	/* The index of names: set before there are threads. After that, only
	 * the scan uses it. */
	char *index;	    /* absolute path or URL, or NULL */
	uint64_t index_tag; /* hash64() of the index's text; 0: not known */
	/* the index with levels: absolute path or URL, or NULL */
	char *levels;
	/* tag of the root if levels are shown and names are listed; else 0 */
	uint64_t levels_tag;
	/* the mount's names are from an index that has changed since */
	bool relist;
};

#ifdef HAVE_REMOTE
struct object_config;
void stack_remote_config(const struct stack *s, struct object_config *config);
#endif

/* given_names.c: names from an index. given_text() reads an index from an
 * absolute path or URL; the caller frees the text. given_open() puts an origin
 * with these names above `o`. given_check() checks at the start that the names
 * are known, or that the index can be read and matches the source. Both return
 * 0, or -errno with err set. */
int given_text(struct stack *s, const char *where, char **text, size_t *bytes,
	struct error *err);
int given_open(struct stack *s, struct origin **o, struct error *err);
int given_check(struct stack *s, struct error *err);

/* given_levels.c: levels of JPEGs, from an index. levels_open() puts an origin
 * that shows them above *o. levels_check() compares the level of the names that
 * are known with that of the mount. */
int levels_open(struct stack *s, struct origin **o, struct error *err);
void levels_check(struct stack *s);

/*
 * reachable.c: wait until a directory answers; a failure is an answer, too.
 * Returns 0, or -ETIMEDOUT after timeout_s seconds. Prints a message if the
 * wait is long. With `kept` it waits at most 3 s, and sets *path to the
 * directory's path, with as many links resolved as the storage answers for;
 * NULL if the path is unknown. The caller frees *path.
 */
int reach_directory(const char *source, unsigned timeout_s, bool kept,
	char **path, struct error *err);

#endif

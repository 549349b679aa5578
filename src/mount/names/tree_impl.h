/* SPDX-License-Identifier: MIT */
/* Shared by the files of the tree: struct tree, its events, and functions of
 * each file. */
#ifndef NAMES_TREE_IMPL_H
#define NAMES_TREE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/magic.h"
#include "mount/names/tree.h"

/* A consequence of a change, to be acted on by the tree's thread. */
struct tree_event {
	struct list link;
	enum manifest_change change;
	node_id dir, id;
	uint64_t turn; /* tree.turn when it happened */
	struct node_info old;
	char name[];
};

struct tree {
	uint32_t magic;
	struct tree_config config; /* set once */
	pthread_t thread;	   /* set once */
	pthread_mutex_t lock;	   /* guards all below */
	pthread_cond_t event_cond; /* an event came, or resumed, or stopping */
	pthread_cond_t done_cond;  /* requests or events ended */
	struct list events;
	uint64_t reported;    /* offset in the trail of the manifest */
	bool acting;	      /* the thread is acting on an event */
	bool paused;	      /* the thread begins no other event */
	bool stopping;	      /* no new request begins */
	bool ending;	      /* the thread acts on the remaining events */
	unsigned requests;    /* requests at the origin */
	uint64_t turn;	      /* number of listings that have begun */
	struct list listings; /* of struct listing */
	struct list asks;     /* of struct ask */
	bool silent;	   /* the origin did not answer the last ask in time */
	uint64_t probed_s; /* when it was last asked after that */
	uint64_t changed, added, removed; /* names, since the start */
	/* Changed attributes; directories listed */
	uint64_t attrs, listed;
};

/*
 * tree_deep.c: list everything below a directory by one request and wait for
 * it, if the origin can do that. Adds the number of directories to
 * *directories. Returns 0 or -errno.
 */
int tree_walk_deep(struct tree *t, node_id top, uint64_t *directories);

/* tree_event.c: count a request to the origin. Returns false when the tree is
 * stopping. */
bool tree_request_begin(struct tree *t);
void tree_request_end(struct tree *t);

uint64_t tree_now_s(void);

/* Like tree_list() with `again`, but with a listing that began after tree.turn
 * was `since`: an earlier listing may already have passed the names in
 * question. */
int tree_list_since(
	struct tree *t, node_id dir, uint64_t since, struct tree_wait *w);

/*
 * tree_name.c, tree_walk.c: end the requests that still wait for an answer with
 * -ENOTCONN, when the tree stops.
 */
void tree_fail_asks(struct tree *t);
void tree_fail_listings(struct tree *t);

#endif

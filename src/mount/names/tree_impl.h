/* SPDX-License-Identifier: MIT */
/* Struct tree, its events, and functions of each file of the tree. */
#ifndef NAMES_TREE_IMPL_H
#define NAMES_TREE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/magic.h"
#include "mount/names/tree.h"

/* A change on which the tree's thread has to act. */
struct tree_event {
	struct list link;
	enum manifest_change change;
	node_id dir, id;
	uint64_t turn; /* tree.turn at the time of the event */
	struct node_info old;
	char name[];
};

struct tree {
	uint32_t magic;
	struct tree_config config; /* set once */
	pthread_t thread;	   /* set once */
	pthread_mutex_t lock;	   /* guards all members below */
	/* An event was queued, or a flag below has changed */
	pthread_cond_t event_cond;
	/* The last request has ended, or an event was handled */
	pthread_cond_t done_cond;
	struct list events;
	uint64_t reported; /* trail offset of the last reported change */
	bool acting;	   /* the thread is acting on an event */
	bool paused;	   /* events wait until tree_resume() */
	bool stopping;	   /* no new request may begin */
	/* The thread acts on the remaining events and ends */
	bool ending;
	unsigned requests;    /* requests to the origin in flight */
	uint64_t turn;	      /* number of listings that have begun */
	struct list listings; /* list of struct listing */
	struct list asks;     /* list of struct ask */
	/* The origin did not answer the last question in time */
	bool silent;
	/* time of the last question since the origin fell silent */
	uint64_t probed_s;
	uint64_t changed, added, removed; /* number of names since the start */
	/* Number of changed attributes, and of directories listed */
	uint64_t attrs, listed;
};

/* tree_deep.c: list everything below a directory by one request, and wait for
 * the end. The origin must be able to list recursively. Adds the number of
 * directories to *directories. Returns 0 or -errno. */
int tree_walk_deep(struct tree *t, node_id top, uint64_t *directories);

/* tree_event.c: count a request to the origin as begun or ended.
 * tree_request_begin() returns false when the tree is being stopped. */
bool tree_request_begin(struct tree *t);
void tree_request_end(struct tree *t);

uint64_t tree_now_s(void);

/* Like tree_list() with `again`, but wait for a listing that began after
 * tree.turn was `since`. A listing that began earlier may have passed the names
 * in question before they changed. */
int tree_list_since(
	struct tree *t, node_id dir, uint64_t since, struct tree_wait *w);

/* tree_name.c, tree_walk.c: end the requests that still wait for an answer;
 * they get -ENOTCONN, because the tree is being stopped. */
void tree_fail_asks(struct tree *t);
void tree_fail_listings(struct tree *t);

#endif

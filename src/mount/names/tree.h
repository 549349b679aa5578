/* SPDX-License-Identifier: MIT */
/*
 * The tree keeps the manifest up to date with the origin. It looks up unknown
 * names, lists each directory once, finds changes by refreshing or
 * revalidating, and reports the consequences for caches. No function waits for
 * the origin unless its comment says so; answers come by callback, on the
 * origin's threads.
 */
#ifndef NAMES_TREE_H
#define NAMES_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/list.h"
#include "mount/names/manifest.h"
#include "origin/origin.h"
#include "mount/names/inode.h"

struct tree;

struct tree_config {
	struct origin *origin; /* all outlive the tree */
	struct manifest *manifest;
	struct timers *timers;
	/* 0: the manifest counts as right until a refresh */
	unsigned revalidate_s;
	/* Time that a look-up waits to confirm that known names are still
	 * valid; 0: 2 s. */
	uint64_t patience_ns;
	/*
	 * The consequences of changes. Each function is called on the tree's
	 * own thread, in order, with no lock held. ceased(): a version of a
	 * file no longer exists.
	 */
	void (*ceased)(void *arg, const struct node_info *old);
	/* A name has another node now, or none. */
	void (*renamed)(void *arg, node_id dir, const char *name);
	/* The attributes of a node changed. */
	void (*changed)(void *arg, node_id id);
	void *arg;
	const struct event_sink *events; /* may be NULL */
	/* Changes wait for tree_resume(), because the kernel cannot be told
	 * yet. */
	bool paused;
};

/* Create the tree and start its thread. Returns 0 or -errno. */
int tree_new(
	struct tree **out, const struct tree_config *config, struct error *err);

/* Act on changes from now on, including those that have waited. */
void tree_resume(struct tree *t);

/*
 * Stop the tree. Calls that still wait for the origin after a second end with
 * -ENOTCONN; then this returns false, and the tree and everything that it uses
 * must not be freed. FUSE handlers must still be running, because the tree's
 * thread may wait for the kernel.
 */
bool tree_stop(struct tree *t);
void tree_free(struct tree *t);

/* Check the source itself; waits for the origin. Used at start-up. */
int tree_open_root(struct tree *t, struct error *err);

/* -- One name ------------------------------------------------------------ */

struct tree_lookup {
	/* Called once if tree_lookup() returned 0. With status 0, info has a
	 * reference. */
	void (*done)(struct tree_lookup *l, int status,
		const struct node_info *info);
};

/* Find a name. Returns 1 if info is set, with a reference; 0 if done() will be
 * called; -ENOENT if there is no such name; or another -errno. */
int tree_lookup(struct tree *t, node_id dir, const char *name,
	struct tree_lookup *l, struct node_info *info);

/* The origin has something else under this node's name: find out what. A node
 * that has not been read gets a new version; see manifest_follow(). */
void tree_recheck(struct tree *t, node_id id);

/* Start such a check; l->done() is called with the result. Returns 0 or
 * -errno. */
int tree_follow(struct tree *t, node_id id, struct tree_lookup *l);

/* With revalidation: check a directory again if that is due. */
void tree_revalidate_dir(struct tree *t, const struct node_info *dir);

/* -- Directories --------------------------------------------------------- */

struct tree_wait {
	void (*done)(struct tree_wait *w, int status); /* once */
	struct list link;			       /* private */
};

/*
 * List a directory, so that its names are known. Returns 1 if they are known
 * already, 0 if done() will be called, -ENOTDIR, or -ENOTCONN when the tree is
 * being stopped. `again`: ask the origin even if they are known.
 */
int tree_list(struct tree *t, node_id dir, bool again, struct tree_wait *w);

/* -- Whole trees --------------------------------------------------------- */

#define TREE_WHY_MAX 400

struct tree_walk_result {
	uint64_t directories, changed, added, removed;
	uint64_t failed; /* directories that could not be listed */
	node_id first;	 /* the first of these */
	int status;	 /* why, as -errno */
	/* Why, in words; "" if the status is enough. */
	char why[TREE_WHY_MAX];
	/* Why the walk was given up: the source did not answer any more
	 * (-ETIMEDOUT), its directories have no end (-EMLINK), or it has more
	 * names than memory has room for (-E2BIG). 0: it was not. */
	int unasked;
};

/* Add the directories that a second walk could not list, and why it did not ask
 * for the rest. */
void tree_walk_add_failed(
	struct tree_walk_result *sum, const struct tree_walk_result *one);

/* The path of a node for a message; the beginning of a long one is left out. */
#define TREE_SHOWN_MAX 256
void tree_show_path(struct tree *t, node_id id, char *buf);

/*
 * Set err to a message with the number of directories that could not be listed,
 * the first of them, and the reason. Call this only if there are some. Returns
 * -errno.
 */
int tree_walk_error(struct tree *t, const struct tree_walk_result *result,
	struct error *err);

/*
 * Walk everything below a directory, several listings at a time, and wait for
 * the end. `again`: list directories that are known, too. Returns -ENOTCONN
 * when the tree is being stopped.
 */
int tree_walk(struct tree *t, node_id top, bool again,
	struct tree_walk_result *result);

/* Refresh one path: a file, or a directory with everything below it. Waits for
 * the origin. Returns -ENOENT if the source has no such name, and had none
 * before. */
int tree_refresh(struct tree *t, const char *path,
	struct tree_walk_result *result, struct error *err);

/* Wait until the consequences of all changes so far have been acted on. */
void tree_flush(struct tree *t);

/* If the consequences of all changes so far have been acted on, note that in
 * the manifest (manifest_told()). */
void tree_note_told(struct tree *t);

/* A manifest_event_fn that queues a change for the tree's thread; arg is the
 * tree. */
void tree_on_event(void *arg, const struct manifest_event *ev);

/* Questions that the origin has not answered yet. */
struct tree_waits {
	unsigned lookups, listings;
};
void tree_waits(struct tree *t, struct tree_waits *out);

/* Names that were added, removed or replaced since the start. */
uint64_t tree_changes(struct tree *t);

/* A number that grows with every change that makes a saved manifest out of
 * date; 0 at the start. */
uint64_t tree_generation(struct tree *t);

#endif

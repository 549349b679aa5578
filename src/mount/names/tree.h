/* SPDX-License-Identifier: MIT */
/*
 * The tree keeps the manifest up to date with the origin. It looks up unknown
 * names, and lists each directory once. It finds changes by refreshing or
 * revalidating names, and reports each change, so that caches can drop what is
 * out of date. No function waits for the origin unless its comment says so.
 * Answers arrive by callback, on the threads of the origin.
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
	/* The origin, the manifest and the timers must outlive the tree. */
	struct origin *origin;
	struct manifest *manifest;
	struct timers *timers;
	/* Names are checked again after this time; 0: only by a refresh */
	unsigned revalidate_s;
	/* Time for which a look-up waits until the origin confirms a known
	 * name; 0: 2 s. */
	uint64_t patience_ns;
	/* The tree reports changes by these functions. Its own thread calls
	 * them in order, with no lock held. ceased(): a version of a file no
	 * longer exists. */
	void (*ceased)(void *arg, const struct node_info *old);
	/* Another node has this name now, or no node has it. */
	void (*renamed)(void *arg, node_id dir, const char *name);
	/* The attributes of a node changed. */
	void (*changed)(void *arg, node_id id);
	void *arg;
	const struct event_sink *events; /* may be NULL */
	/* Changes wait for tree_resume(), because the kernel cannot be notified
	 * yet. */
	bool paused;
};

/* Create the tree and start its thread. Returns 0 or -errno. */
int tree_new(
	struct tree **out, const struct tree_config *config, struct error *err);

/* Act on changes from now on, including the earlier ones. */
void tree_resume(struct tree *t);

/*
 * Stop the tree. Calls that still wait for the origin after a second end with
 * -ENOTCONN. Then this returns false, and the tree and everything that it uses
 * must not be freed. FUSE handlers must still be running, because the tree's
 * thread may wait for the kernel.
 */
bool tree_stop(struct tree *t);
void tree_free(struct tree *t);

/* Check the directory of the source at the start. Waits for the origin. */
int tree_open_root(struct tree *t, struct error *err);

/* -- One name ------------------------------------------------------------ */

struct tree_lookup {
	/* Called once if tree_lookup() has returned 0. With status 0, the node
	 * of info has a reference. */
	void (*done)(struct tree_lookup *l, int status,
		const struct node_info *info);
};

/* Find a name. Returns 1 with *info set and a reference to the node; 0 if
 * done() will be called; -ENOENT if there is no such name; or another
 * -errno. */
int tree_lookup(struct tree *t, node_id dir, const char *name,
	struct tree_lookup *l, struct node_info *info);

/* Call this when the origin does not have this version of the node any more:
 * ask the origin about the name. A node whose file has not been read gets the
 * new version; see manifest_follow(). */
void tree_recheck(struct tree *t, node_id id);

/* Like tree_recheck(), and call l->done() with the result. Returns 0 or
 * -errno. */
int tree_follow(struct tree *t, node_id id, struct tree_lookup *l);

/* If names are revalidated and this directory is due, ask the origin about it.
 */
void tree_revalidate_dir(struct tree *t, const struct node_info *dir);

/* -- Directories --------------------------------------------------------- */

struct tree_wait {
	void (*done)(struct tree_wait *w, int status); /* called once */
	struct list link;			       /* private */
};

/* List a directory, so that its names are known. Returns 1 if they are known
 * already; 0 if done() will be called; -ENOTDIR; or -ENOTCONN when the tree is
 * being stopped. `again`: ask the origin even if the names are known. */
int tree_list(struct tree *t, node_id dir, bool again, struct tree_wait *w);

/* -- Whole trees --------------------------------------------------------- */

#define TREE_WHY_MAX 400

struct tree_walk_result {
	uint64_t directories, changed, added, removed;
	uint64_t failed; /* number of directories that could not be listed */
	node_id first;	 /* the first of these directories */
	int status;	 /* reason for the first one, as -errno */
	/* The reason in words; "": `status` says everything. */
	char why[TREE_WHY_MAX];
	/* Why the walk ended early: the source stopped answering (-ETIMEDOUT),
	 * its directories seem to have no end (-EMLINK), or its names do not
	 * fit into memory (-E2BIG). 0: it did not end early. */
	int unasked;
};

/* Add to *sum the directories that the walk *one could not list, and the reason
 * if the walk ended early. */
void tree_walk_add_failed(
	struct tree_walk_result *sum, const struct tree_walk_result *one);

/* Get the path of a node for a message. The end of a long path is replaced by
 * "...". */
#define TREE_SHOWN_MAX 256
void tree_show_path(struct tree *t, node_id id, char *buf);

/* Set err to a message with the number of directories that could not be listed,
 * the first of them, and the reason. There must be at least one. Returns the
 * reason as -errno. */
int tree_walk_error(struct tree *t, const struct tree_walk_result *result,
	struct error *err);

/* Walk everything below a directory, with several listings at a time, and wait
 * for the end. `again`: also list directories whose names are known. Returns 0,
 * or -ENOTCONN when the tree is being stopped. */
int tree_walk(struct tree *t, node_id top, bool again,
	struct tree_walk_result *result);

/* Refresh one path: a file, or a directory with everything below it. Waits for
 * the origin. Returns 0; -ENOENT if the source has no such name and had none
 * before; or another -errno. */
int tree_refresh(struct tree *t, const char *path,
	struct tree_walk_result *result, struct error *err);

/* Wait until the tree's thread has acted on all changes so far. */
void tree_flush(struct tree *t);

/* If the tree's thread has acted on all changes so far, call manifest_told()
 * for them. */
void tree_note_told(struct tree *t);

/* A manifest_event_fn that queues a change for the tree's thread. `arg` is the
 * tree. */
void tree_on_event(void *arg, const struct manifest_event *ev);

/* The numbers of look-ups and listings that wait for the origin. */
struct tree_waits {
	unsigned lookups, listings;
};
void tree_waits(struct tree *t, struct tree_waits *out);

/* Returns the number of names that were added, removed or replaced since the
 * start. */
uint64_t tree_changes(struct tree *t);

/* Returns a number that grows with every change that makes a saved manifest out
 * of date; 0 at the start. */
uint64_t tree_generation(struct tree *t);

#endif

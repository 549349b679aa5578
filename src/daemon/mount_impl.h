/* SPDX-License-Identifier: MIT */
/* Inside the daemon: the graph of a mount, shared by the daemon's files. */
#ifndef DAEMON_MOUNT_IMPL_H
#define DAEMON_MOUNT_IMPL_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/counters.h"
#include "base/timer.h"
#include "cache/cache.h"
#include "ctl/ctl.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "fs/fs.h"
#include "manifest/manifest.h"
#include "origin/origin.h"
#include "prefetch/prefetch.h"
#include "store/store.h"

enum scan_state {
	SCAN_RUNNING,
	SCAN_COMPLETE,
	SCAN_INCOMPLETE, /* directories could not be listed; tried again */
};

/* How far a mount has come. The lock guards all below it. */
struct mount_life {
	pthread_t signal_thread; /* process.c's, these two */
	bool signal_started;
	bool quiesced; /* set by the signal thread or, when it is gone, the main
			  thread */
	bool quiet;    /* likewise; no request is in flight at the origin any
			  more */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool asking;  /* the start waits for the origin */
	bool serving; /* all parts are there */
	bool stopping;
	int signal; /* the signal that stopped it; 0: it was unmounted */
};

/* The background scan; see scan.c. */
struct mount_scan {
	pthread_t thread;
	bool started;
	bool relist;	  /* kept names are of another index; thread */
	atomic_int state; /* enum scan_state; relaxed */
	pthread_mutex_t sweep_lock; /* one sweep at a time; outermost */
	/* Directories that the last scan could not list; mount_life.lock. */
	struct tree_walk_result unlisted;
	/* tree_generation() of the manifest that was kept; mount_life.lock. */
	uint64_t kept;
};

/* Faults for drills. */
struct mount_faults {
	struct origin *origin; /* in the stack, or NULL; set once */
	char *spec;	       /* those in force; mount_life.lock */
};

/*
 * One mount: its parts, which all files of the daemon use. Set once while it is
 * built, but for the three that have types of their own.
 */
struct mount {
	struct mount_options options; /* strings owned by the caller */
	const struct scheme *scheme;  /* of the source; source.c */
	char *source;		      /* the dataset as tiers record it */
	bool unreached;	  /* the source did not answer at the start */
	char *mountpoint; /* absolute, no links */
	char *tier_dir[STORE_TIERS_MAX]; /* absolute */
	/* Things that a failed mount has to remove again. */
	bool tier_new[STORE_TIERS_MAX], tier_dir_new[STORE_TIERS_MAX];
	struct counters counters;
	uint64_t started_ns;
	struct log *log;
	const struct event_sink *events; /* of the log */
	struct timers *timers;
	struct origin *origin; /* the outermost decorator */
	struct origin *remote; /* at the bottom, if it is far away */
	struct origin *named;  /* above it, with --manifest */
	char *index;	       /* path or URL of that; absolute */
	uint64_t index_tag;    /* hash64() of its text; 0: not known */
	struct store *store;
	struct manifest *manifest;
	struct tree *tree;
	struct cache *cache;
	struct prefetch *prefetch;
	struct plans *plans;
	struct ctl_server *ctl;
	struct fs *fs;
	struct pages *pages;	   /* NULL: their number is not bounded */
	struct analysis *analysis; /* NULL on an ordinary mount */
	int ready_fd; /* the parent waits for the outcome here, or -1 */
	struct mount_life life;
	struct mount_scan scan;
	struct mount_faults faults;
};

/* source.c: paths, the origin's stack. */
int mount_resolve(struct mount *m, struct error *err);
int mount_resolve_source(struct mount *m, struct error *err);

/*
 * reach.c: wait until a directory answers. -ETIMEDOUT after timeout_s seconds;
 * any answer will do, a failure too. Says so when it takes long. With `kept`
 * it waits 3 s at most, and *path, to be freed, is then the directory's path,
 * of which links are resolved as far as anything answers; NULL: not known.
 */
int reach_directory(const char *source, unsigned timeout_s, bool kept,
	char **path, struct error *err);
int mount_open_origin(struct mount *m, struct error *err);

/*
 * given.c: names from --manifest. Put an origin with those names above `o`; see
 * at the start whether they are known, or can be read and fit the source.
 * -errno with err set.
 */
int given_open(struct mount *m, struct origin **o, struct error *err);
int given_check(struct mount *m, struct error *err);
/* All of them were listed. */
void given_listed(struct mount *m);

#ifdef HAVE_REMOTE
struct remote_config;
void mount_remote_config(struct mount *m, struct remote_config *config);
#endif

/* Whether a source far away can be read; waits a few seconds for it. */
int mount_probe_origin(struct mount *m, struct error *err);

/*
 * daemon.c. End at once while the main thread waits for the origin (lock held):
 * accept no new work, and end everything that a handler or the kernel waits
 * for.
 */
void mount_give_up(struct mount *m);
void mount_set_stopping(struct mount *m);
void mount_quiesce(struct mount *m);

/* events.c: the log, and events of the mount itself. */
int events_open(struct mount *m, struct error *err);
void events_mounted(struct mount *m);
void events_ended(struct mount *m, const struct error *why); /* or NULL */

/*
 * limits.c: reasons why the mount is slower, smaller or less safe than it could
 * be. fn gets each sentence, valid during the call.
 */
typedef void limit_fn(void *arg, const char *sentence);
void limits_of_memory(struct mount *m, limit_fn *fn, void *arg);
void limits_of_tiers(struct mount *m, limit_fn *fn, void *arg);
void limits_of_kernel(struct mount *m, limit_fn *fn, void *arg);
void limits_of_source(struct mount *m, limit_fn *fn, void *arg);
/* A limit_fn that writes to the log; arg is the mount. */
void limit_report(void *arg, const char *sentence);

/*
 * process.c. Fork unless the mount stays in the foreground; in the parent, wait
 * for the outcome of the start, which the child tells.
 */
int process_fork(struct mount *m, struct error *err, bool *parent);
void process_ready(struct mount *m);
void process_failed(struct mount *m, int rc, const struct error *err);
/* Block signals before any thread is made, so that all inherit it. */
void process_block_signals(void);
/* A thread takes them: the first that ends the mount stops it. */
int process_take_signals(struct mount *m, struct error *err);
void process_leave_signals(struct mount *m);

/* scan.c: the background scan, and uses of a complete manifest. */
int scan_start(struct mount *m, struct error *err);
void scan_stop(struct mount *m);

/*
 * Delete entries that belong to no item of the manifest, as garbage of old
 * versions, and count them as invalidated. Call it only when the manifest is
 * known to be right.
 */
void mount_sweep(struct mount *m);

/*
 * The manifest in the last tier: load it into m->manifest (created anew), and
 * save it if it has changed since. Failed saves are counted.
 */
int manifest_open(struct mount *m, struct error *err);
void manifest_keep(struct mount *m);

/* Called for every item of a file. Returning false stops the walk; so does the
 * end of the mount. */
typedef bool mount_item_fn(void *arg, const struct cache_item *item);
bool mount_items(struct mount *m, const struct node_info *info,
	mount_item_fn *fn, void *arg);

/* pages.c: a bound on the kernel's pages of passed-through items. */
struct pages;
int pages_new(struct pages **out, struct mount *m, struct error *err);
void pages_free(struct pages *p); /* before the fs; NULL is allowed */
void pages_passed(struct pages *p, const struct cache_item *item);

/*
 * analysis.c: what `refrain analyze` asks of a mount: hide items of the tiers,
 * answer with tiny images, count what is read.
 */
struct analysis;
int analysis_new(struct analysis **out, struct mount *m, struct error *err);
/* Readers may still come, but drop no pages any more. */
void analysis_stop(struct analysis *a);
void analysis_free(struct analysis *a); /* after the fs; NULL is allowed */
const struct cache_mask *analysis_mask(const struct analysis *a);
const struct fs_watch *analysis_watch(const struct analysis *a);
/* True, and the peer got an error, if the mount is analysed. */
bool analysis_refuses(const struct mount *m, struct ctl_conn *conn);

/* status.c: the object of `refrain status --json`; NULL: no memory. */
json_t *mount_status(struct mount *m);

/* commands.c and others: the commands of the control socket. */
typedef void mount_command_fn(
	void *arg, struct ctl_conn *conn, const json_t *request);
extern const struct ctl_command mount_commands[];
mount_command_fn command_warm;
mount_command_fn command_keys;
mount_command_fn command_report;
mount_command_fn command_mask, command_content, command_rates;
mount_command_fn command_plan, command_plan_add, command_plan_progress,
	command_plan_status, command_plan_follow, command_plan_drop;

/*
 * loaders.c: count what a loader reports in a request, such as its direct hits.
 * -EINVAL: a count is malformed, and nothing was counted.
 */
int report_take(struct mount *m, const json_t *request, struct error *err);

/*
 * Get the "paths" of a request: an array, or NULL if there are none. False: it
 * is something else, and the peer got an error.
 */
bool command_paths(
	struct ctl_conn *conn, const json_t *request, const json_t **paths);

/*
 * Add the directories that a walk could not list: their number, and a sentence
 * as "unlisted_why". A NULL reply is allowed.
 */
void status_add_unlisted(json_t *reply, struct mount *m, const char *number,
	const struct tree_walk_result *result);

/* loaders.c: the names in a request, for commands that take many of them. */
struct names {
	struct mount *m;
	bool listed; /* the whole source was listed, to find a name */
};

/*
 * Find the node of a name. Unknown names are looked up at most once a request.
 * Returns -EINVAL if it is not a path, -ENOENT if the source has no such name.
 */
int names_find(struct names *n, const json_t *name, struct node_info *info);

#endif

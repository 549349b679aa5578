/* SPDX-License-Identifier: MIT */
/*
 * The parts of a mount, and the functions that the daemon's files share. The
 * comment before each group of functions names its file.
 */
#ifndef DAEMON_MOUNT_IMPL_H
#define DAEMON_MOUNT_IMPL_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/counters.h"
#include "common/base/magic.h"
#include "common/base/timer.h"
#include "mount/cache/cache.h"
#include "mount/daemon/control_server.h"
#include "mount/daemon/json_text.h"
#include "mount/daemon/daemon.h"
#include "mount/daemon/epochs.h"
#include "mount/fs/fs.h"
#include "mount/fs/fs_session.h"
#include "mount/daemon/log.h"
#include "mount/daemon/mount_hooks.h"
#include "mount/names/manifest.h"
#include "origin/origin.h"
#include "mount/fs/pages.h"
#include "origin/peer/peer.h"
#include "mount/plan/prefetch.h"
#include "origin/layer/stack.h"
#include "mount/store/store.h"

enum scan_state {
	SCAN_RUNNING,
	SCAN_COMPLETE,
	SCAN_INCOMPLETE, /* directories could not be listed; tried again */
};

/* The state of a mount's life. The lock guards all members below it. */
struct mount_life {
	/* This and the next belong to daemon_process.c. */
	pthread_t signal_thread;
	bool signal_started;
	/* Set by the signal thread or, when that has ended, by the main
	 * thread. */
	bool quiesced;
	/* No request is in flight at the origin any more. Set by the same
	 * threads. */
	bool quiet;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool asking;  /* starting, and waiting for the origin */
	bool serving; /* all parts exist */
	bool stopping;
	int signal; /* the signal that stopped it; 0: it was unmounted */
};

/* Where the manifest is saved, which is in a tier. */
struct saved_manifest {
	struct store *store;
	size_t tier;
	const char *dir; /* directory of the tier */
	struct counters *counters;
	const struct event_sink *events;
};

/* Parts of a mount that warming uses; set once. */
struct warming {
	uint32_t magic;
	struct manifest *manifest;
	struct tree *tree;
	struct cache *cache;
	struct store *store;
	struct scan *scan;
};

/* Parts of a mount that loaders use by commands; set once. */
struct loaders {
	uint32_t magic;
	struct manifest *manifest;
	struct tree *tree;
	struct scan *scan; /* NULL: all names are known */
	struct cache *cache;
	struct plans *plans;
	const struct mount_hooks *hooks; /* NULL on an ordinary mount */
	struct counters *counters;
};

/* The epochs of a mount, and the parts that they read; set once. */
struct mount_epochs {
	uint32_t magic;
	struct epochs *epochs;
	struct store *store;
	struct counters *counters;
};

#define COMMANDS_MAX 20

/* The parts of one mount. Other files get only the parts that they use. All
 * members but `life` are set once, while the mount is built. */
struct mount {
	uint32_t magic;
	struct mount_options options; /* strings owned by the caller */
	char *mountpoint;	      /* absolute, no links */
	/* Passed on by the previous daemon; -1: none */
	struct session_fds given;
	struct session *session;
	int names_fd; /* the manifest's record; -1: there is none */
	pid_t holder; /* the process that started this one */
	/* Why this does not continue the previous daemon's mount, or NULL */
	char *refused;
	char *tier_dir[STORE_TIERS_MAX];    /* absolute */
	const char *typed[STORE_TIERS_MAX]; /* the same directories, as typed */
	char *cwd;			    /* where the process was started */
	/* The handshake with the kernel is done */
	atomic_bool can_upgrade;
	/* The process that started this one keeps all descriptors */
	atomic_bool kept;
	/* Directories that a failed mount must remove again. */
	bool tier_new[STORE_TIERS_MAX], tier_dir_new[STORE_TIERS_MAX];
	struct counters counters;
	uint64_t started_ns;
	struct log *log;
	const struct event_sink *events; /* the log's sink */
	struct timers *timers;
	struct stack *stack;
	struct store *store;
	bool memory_short; /* it may not fit the control group */
	struct manifest *manifest;
	struct tree *tree;
	struct peering *peering; /* NULL: no peers */
	struct cache *cache;
	struct prefetch *prefetch;
	struct plans *plans;
	struct scan *scan;
	struct warming warming;
	struct loaders loaders;
	struct ctl_command commands[COMMANDS_MAX];
	struct ctl_server *ctl;
	struct fs *fs;
	struct pages *pages;	  /* NULL: their number is not limited */
	struct mount_parts parts; /* for the hooks */
	struct mount_epochs epochs;
	/* Pipe to the parent, which waits for the result; or -1 */
	int ready_fd;
	struct mount_life life;
};

/* mount_paths.c: resolve the paths in the options. */
int mount_resolve(struct mount *m, struct error *err);

/* daemon.c: mount_set_stopping() refuses new work from now on; mount_quiesce()
 * ends everything for which a handler or the kernel waits. */
void mount_set_stopping(struct mount *m);
void mount_quiesce(struct mount *m);

/* notify.c: send a state to the process that started this one, with a
 * descriptor or -1. */
void notify_holder(const char *state, int fd);

/*
 * held.c: held_take() takes the descriptors that were passed to this process,
 * held_store() has the holder keep those of a new mount, held_drop() has it
 * keep none any more, and held_refuse() ends the mount that was passed on, so
 * that a new one replaces it.
 */
void held_take(struct mount *m);
void held_store(struct mount *m);
void held_drop(const struct mount *m);
void held_refuse(struct mount *m, const char *why);
/* Was this process started after another one of the same mount had ended? */
bool held_again(void);
/* The descriptor of the session that was passed on; -1: there is none. */
int held_session(void);
/* The socket of a holder that this daemon has joined by itself; when it closes,
 * the holder sees the end of the daemon. -1: it has joined none. */
int held_link(void);
/* Are the descriptors kept? "yes", "no", "incomplete", "lost" or "stopped". */
const char *held_state(const struct mount *m);
/* May this daemon exit at once? It may if all descriptors are kept by a holder
 * that starts the next daemon; then the session notes that. */
bool held_leave(struct mount *m);

/* log_events.c: the log, and events of the mount itself. */
int events_open(struct mount *m, struct error *err);
void events_mounted(struct mount *m);
/* Report that the cache has stopped; `before` is the number of items that it
 * had dropped until then. */
void events_stopped(struct mount *m, uint64_t before);
void events_ended(struct mount *m, const struct error *why); /* or NULL */

/*
 * mount_limits.c: report reasons why the mount is slower, smaller or less safe
 * than it could be. fn gets each as a sentence that is valid during the call.
 */
typedef void limit_fn(void *arg, const char *sentence);
void limits_of_tiers(struct store *store, limit_fn *fn, void *arg);
void limits_of_kernel(struct fs *fs, limit_fn *fn, void *arg);
void limits_of_source(
	const char *source, bool insecure_tls, limit_fn *fn, void *arg);
/* A limit_fn that writes to the log, its arg. */
void limit_report(void *arg, const char *sentence);

/*
 * daemon_memory.c: memory_limit() is the limit of this process's memory, or
 * CGROUP_NO_LIMIT. memory_default_staging() is the default of --staging for a
 * mount whose largest item has item_bytes. Two limits depend on staging:
 * memory_gather_bytes() for reads over several items, and
 * memory_inflight_bytes() for requests in flight (0: none).
 */
uint64_t memory_limit(void);
uint64_t memory_default_staging(struct store *store, uint64_t item_bytes);
uint64_t memory_gather_bytes(uint64_t staging_bytes);
uint64_t memory_inflight_bytes(uint64_t staging_bytes);
/* If a mount of this many files may need more memory, call fn() and return
 * true. */
bool limits_of_memory(struct store *store, uint64_t staging_bytes,
	uint64_t files, limit_fn *fn, void *arg);

/* daemon_process.c: fork unless the mount stays in the foreground. The parent
 * waits until the child reports whether the start succeeded. */
int process_fork(struct mount *m, struct error *err, bool *parent);
void process_ready(struct mount *m);
void process_failed(struct mount *m, int rc, const struct error *err);
/* Set limits and signals of the process, before any thread exists. */
void process_prepare(void);
/* Start a thread that receives all signals; the first terminating signal stops
 * the mount. */
int process_take_signals(struct mount *m, struct error *err);
void process_leave_signals(struct mount *m);
/* Exit although some parts cannot be freed. `why` is the reason if the mount
 * has failed, or NULL. */
void process_leave_at_once(struct mount *m, const struct error *why);
/* Remove the tiers that this mount has created. */
void process_leave_no_tier(struct mount *m);

/*
 * source_scan.c: the background scan, and uses of a complete manifest.
 * saved_load() loads the manifest that a tier keeps, or creates an empty one
 * for the source. saved_recover() recovers that of the previous daemon, or
 * returns -EBADMSG.
 */
int saved_load(const struct saved_manifest *k, const char *source,
	struct manifest **out, struct error *err);
int saved_recover(const struct saved_manifest *k, const char *source,
	struct hash128 session, int names_fd, struct manifest **out,
	struct error *err);

struct scan;
struct scan_config {
	struct saved_manifest saved;
	struct stack *stack;
	struct manifest *manifest;
	struct tree *tree;
	struct cache *cache;
	struct log *log;
	/* The manifest was recovered from the previous daemon */
	bool recovered;
	uint64_t staging_bytes;
	bool memory_short; /* a lack of memory has been reported already */
};
/* Call stack_probe() with the names of a manifest, which must outlive the
 * stack's origins. Do this before the scan. */
int scan_probe(
	struct stack *stack, struct manifest *manifest, struct error *err);
int scan_new(struct scan **out, const struct scan_config *config);
void scan_free(struct scan *s); /* NULL is allowed, here and in scan_join() */
int scan_start(struct scan *s, struct error *err);
/* Make the scan, sweeps and walks over items stop soon, because the mount
 * ends. */
void scan_quit(struct scan *s);
/* Wait for the scan's thread. Call this after the tree was stopped, so that a
 * running walk ends. */
void scan_join(struct scan *s);
enum scan_state scan_state(const struct scan *s);
/* The number of directories that the scan could not list so far. */
void scan_unlisted(struct scan *s, struct tree_walk_result *out);

/*
 * Delete entries that belong to no item of the manifest, because they are of
 * old versions, and count them as invalidated. If a file is huge, entries of
 * the size of its chunks stay. Call this only when the manifest is known to be
 * right.
 */
void scan_sweep(struct scan *s);

/* Save the manifest if it has changed. Failures are counted. */
void scan_save(struct scan *s);

/* Called for every item of a file. Returning false stops the walk; so does the
 * end of the mount. */
typedef bool scan_item_fn(void *arg, const struct cache_item *item);
bool scan_items(struct scan *s, const struct node_info *info, scan_item_fn *fn,
	void *arg);

/* Has the file so many items that no walk may visit them all, except to fetch
 * them? A sparse file can be that large although it has few bytes. */
bool scan_is_huge(const struct scan *s, const struct node_info *info);

/* compare.c: compares units that came from peers with the bytes of the
 * origin. */
struct compare;
/* Origin and counters must outlive it. Returns 0 or -ENOMEM. */
int compare_new(
	struct compare **out, struct origin *origin, struct counters *counters);
void compare_unit(void *arg, struct peers_check *check); /* peers_check_fn */
/* Give up running comparisons, and wait for their end. Later units get
 * -ECANCELED. */
void compare_stop(struct compare *all);
void compare_free(struct compare *all); /* stopped; NULL is allowed */

/* peering.c: the memory of other hosts, between the tiers and the origin. */
struct peering;
struct peering_config {
	struct peers_config peers;
	struct origin *origin; /* this and the next outlive it */
	struct manifest *manifest;
	struct tree *tree;
};
int peering_new(struct peering **out, const struct peering_config *config,
	struct error *err);
/* Start to read the manifest, to compare it with those of the peers. */
int peering_start(struct peering *p, struct scan *scan, struct error *err);
void peering_quit(
	struct peering *p); /* before the tree goes; NULL is allowed */
void peering_free(struct peering *p); /* after the cache; NULL is allowed */
struct provider *peering_provider(const struct peering *p);
/* Add what status shows of the peers, the first source of `cache`. */
void peering_status(const struct peering *p, struct cache *cache, json_t *o);
void peering_limits(const struct peering *p, limit_fn *fn, void *arg);

/*
 * epoch_status.c: count epochs by the misses of a cache with this
 * configuration. pages_bytes is the limit for the kernel's pages of missed
 * items (0: none). -ENOMEM.
 */
int mount_count_epochs(struct mount_epochs *e, struct cache_config *config,
	uint64_t pages_bytes);
/* Add what is known about the epoch. dataset_bytes 0: unknown. */
void status_add_epoch(json_t *o, struct mount_epochs *e, struct cache *cache,
	uint64_t dataset_bytes);

/* troubles.c: add the last error of each cause, with its time and whether it
 * still persists, and for how long the source has not answered. */
void status_add_errors(json_t *o, struct stack *stack, struct log *log);

/* mount_status.c: the object of `refrain status --json`; NULL: no memory. */
json_t *mount_status(struct mount *m);

/* debug_status.c: the object of `refrain status --debug`; NULL: no memory. */
json_t *mount_debug(struct mount *m);

/* control_commands.c: fill in m->commands, the table of the commands of the
 * control socket, and the parts that they use. Call this when all these parts
 * exist. */
void commands_build(struct mount *m);

/* Commands in other files; the comment says what `arg` points to. */
typedef void mount_command_fn(
	void *arg, struct ctl_conn *conn, const json_t *request);
mount_command_fn command_warm;		       /* struct warming */
mount_command_fn command_keys, command_report; /* struct loaders */
mount_command_fn command_plan;		       /* the same */
mount_command_fn command_plan_add, command_plan_progress, command_plan_status,
	command_plan_follow, command_plan_drop; /* none */
mount_command_fn command_upgrade;		/* struct mount */

/*
 * loader_commands.c: count what a loader reports in a request, such as its
 * direct hits. Returns 0, or -EINVAL if a count is malformed; then nothing was
 * counted.
 */
int report_take(
	struct counters *counters, const json_t *request, struct error *err);

/* Is the mount being analysed? Then this has sent the peer an error, because a
 * loader must not bypass the analysis. */
bool loader_refused(const struct loaders *of, struct ctl_conn *conn);

/*
 * Get the "paths" of a request: an array, or NULL if there are none. If it is
 * anything else, sends the peer an error and returns false.
 */
bool command_paths(
	struct ctl_conn *conn, const json_t *request, const json_t **paths);

/* Add the directories that a walk could not list: their number as `number`, and
 * a sentence as "unlisted_why". A NULL reply is allowed. */
void status_add_unlisted(json_t *reply, struct tree *tree, const char *number,
	const struct tree_walk_result *result);

/* loader_commands.c: the names in a request of a command that takes many
 * names. */
struct request_names {
	const struct loaders *of;
	bool listed; /* the whole source was listed, to find a name */
};

/*
 * Find the node of a name. If names are unknown, the source is asked for them
 * at most once in each request. Returns -EINVAL if it is not a path, or -ENOENT
 * if the source has no such name.
 */
int names_find(
	struct request_names *n, const json_t *name, struct node_info *info);

#endif

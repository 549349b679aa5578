/* SPDX-License-Identifier: MIT */
/*
 * Struct mount, and the functions that several files of the daemon use. The
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
#include "common/format/jpeg_levels.h"
#include "mount/cache/cache.h"
#include "mount/daemon/control_server.h"
#include "mount/daemon/json_text.h"
#include "mount/daemon/daemon.h"
#include "mount/daemon/epochs.h"
#include "mount/fs/agent.h"
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
	/* Some directories could not be listed; the scan will try again */
	SCAN_INCOMPLETE,
};

/* The states of a mount's life. The lock guards all members below it. */
struct mount_life {
	/* Only daemon_process.c uses these two members */
	pthread_t signal_thread;
	bool signal_started;
	/* mount_quiesce() was called. Set by the signal thread or, after its
	 * end, by the main thread. */
	bool quiesced;
	/* No request is in flight at the origin any more. Set by the signal
	 * thread or, after its end, by the main thread. */
	bool quiet;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	/* The mount is being started, and the main thread waits for the origin
	 */
	bool asking;
	bool serving; /* all parts exist */
	bool stopping;
	int signal; /* the signal that stopped the mount; 0: it was unmounted */
};

/* The tier in which the manifest is saved, and what is needed to report
 * errors. */
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

/* Parts of a mount that traces of READs use; set once unless noted. */
struct tracing {
	uint32_t magic;
	struct manifest *manifest;
	struct counters *counters;
	struct read_trace *trace;
	atomic_bool busy; /* there is a tracer */
};

/* Parts of a mount that commands of loaders use; set once. */
struct loaders {
	uint32_t magic;
	struct manifest *manifest;
	struct tree *tree;
	struct scan *scan; /* NULL: all names are known */
	struct cache *cache;
	struct plans *plans;
	const struct mount_hooks *hooks; /* NULL: the mount is not analysed */
	struct counters *counters;
};

/* The epochs of a mount, and the parts from which they get counters; set
 * once. */
struct mount_epochs {
	uint32_t magic;
	struct epochs *epochs;
	struct store *store;
	struct counters *counters;
};

#define COMMANDS_MAX 24

/* Kinds of notifiers; see held_notifier.c. */
enum notifier_kind {
	NOTIFIER_NAMES, /* notifies the kernel of changed names */
	NOTIFIER_PAGES, /* drops the kernel's pages */
	NOTIFIER_KINDS,
};

struct notifier {
	enum notifier_kind kind;
	/* The socket, or -1, until notifiers_connect(). Used by the main thread
	 */
	int socket;
	/* The child process, or 0. Used by the main thread, and then by the
	 * thread that uses the agent */
	pid_t pid;
	struct agent *agent; /* NULL: there is no such notifier */
};

/* The parts of one mount. Functions of other files get only the parts that they
 * use. All members except `life` are set once, while the mount is built. */
struct mount {
	uint32_t magic;
	struct mount_options options; /* the caller owns the strings */
	char *mountpoint;	      /* absolute path without symbolic links */
	/* Descriptors that the previous daemon has passed on; -1: none */
	struct session_fds given;
	struct session *session;
	/* the record of changes of the manifest; -1: there is none */
	int names_fd;
	pid_t holder; /* the process that started this one */
	struct notifier notifier[NOTIFIER_KINDS];
	/* Why this mount does not continue the one of the previous daemon, or
	 * NULL */
	char *refused;
	char *tier_dir[STORE_TIERS_MAX]; /* absolute paths of the directories */
	char *root, *root_dir; /* memory for the tier in a cache root */
	/* The same directories, as given by the user */
	const char *typed[STORE_TIERS_MAX];
	char *cwd; /* working directory at the start */
	/* The handshake with the kernel is done, so another program can take
	 * over */
	atomic_bool can_upgrade;
	atomic_bool upgrading; /* a control connection's thread is upgrading */
	/* The process that started this one holds copies of all descriptors */
	atomic_bool has_holder;
	/* Tiers and directories that this mount has created, and must delete if
	 * it fails. */
	bool tier_new[STORE_TIERS_MAX], tier_dir_new[STORE_TIERS_MAX];
	struct counters counters;
	uint64_t started_ns;
	struct log *log;
	const struct event_sink *events; /* sink of the log */
	struct timers *timers;
	struct stack *stack;
	struct store *store;
	/* The mount may not fit into its memory control group */
	bool memory_short;
	struct manifest *manifest;
	struct tree *tree;
	struct peering *peering; /* NULL: no peers */
	struct cache *cache;
	struct prefetch *prefetch;
	struct plans *plans;
	struct scan *scan;
	struct warming warming;
	struct loaders loaders;
	struct tracing tracing;
	struct ctl_command commands[COMMANDS_MAX];
	struct ctl_server *ctl;
	struct fs *fs;
	struct pages *pages;	  /* NULL: the kernel's pages are not limited */
	struct mount_parts parts; /* given to the hooks of an analysis */
	struct mount_epochs epochs;
	/* Pipe on which the parent waits for the result of the start; -1: none
	 */
	int ready_fd;
	struct mount_life life;
};

/* mount_paths.c: resolve the paths in the options. */
int mount_resolve(struct mount *m, struct error *err);

/* daemon.c: after mount_set_stopping(), new work is refused. mount_quiesce()
 * ends all operations for which a handler or the kernel waits. */
void mount_set_stopping(struct mount *m);
void mount_quiesce(struct mount *m);

/* notify.c: send a state to the process that started this one, together with a
 * descriptor (-1: none). */
void notify_holder(const char *state, int fd);

/*
 * held_notifier.c: the notifiers of a mount that outlives its daemon
 * (common/base/notifier.h). notifiers_start() starts the notifiers; call it
 * while there is one thread. notifiers_connect() makes their agents; call it
 * before other parts are made. notifiers_end() ends the notifiers; call it
 * after the end of these parts.
 */
void notifiers_start(struct mount *m);
int notifiers_connect(struct mount *m, struct error *err);
void notifiers_end(struct mount *m);

/* held.c: held_take() takes the descriptors that were passed to this process.
 * held_store() gives the holder copies of those of a new mount, and held_drop()
 * has the holder close all copies. held_refuse() ends the mount that was passed
 * on, so that a new one replaces it. */
void held_take(struct mount *m);
void held_store(struct mount *m);
void held_drop(const struct mount *m);
void held_refuse(struct mount *m, const char *why);
/* held_by_somebody(): does another process hold copies of this one's
 * descriptors? held_by_hold(): is it refrain-hold? */
bool held_by_somebody(void);
bool held_by_hold(void);
/* Did another daemon of the same mount end before this one was started? */
bool held_again(void);
/* Returns the descriptor of the session that was passed on, or -1. */
int held_session(void);
/* Returns the socket of the holder that this daemon has joined (--join), or -1.
 * When the socket closes, the holder takes this for the end of the daemon. */
int held_link(void);
/* Does a holder have all descriptors? Returns "yes", "no", "incomplete", "lost"
 * or "stopped". */
const char *held_state(const struct mount *m);
/* May this daemon exit at once? It may if a holder has all descriptors and
 * starts the next daemon. In this case, note in the session that the daemon has
 * left. */
bool held_leave(struct mount *m);

/* log_events.c: open the log, and report events of the mount itself. */
int events_open(struct mount *m, struct error *err);
void events_mounted(struct mount *m);
/* Report that the cache has stopped, if it had to drop bytes of parts. `before`
 * is the counter partial_dropped at the time before the stop. */
void events_stopped(struct mount *m, uint64_t before);
/* `why` may be NULL */
void events_ended(struct mount *m, const struct error *why);

/* mount_limits.c: call fn for each reason why the mount is slower, smaller or
 * less safe than it could be. A reason is a sentence that is valid during the
 * call. */
typedef void limit_fn(void *arg, const char *sentence);
void limits_of_tiers(struct store *store, limit_fn *fn, void *arg);
void limits_of_kernel(struct fs *fs, limit_fn *fn, void *arg);
void limits_of_source(
	const char *source, bool insecure_tls, limit_fn *fn, void *arg);
/* A limit_fn that writes to the log; `arg` is the log. */
void limit_report(void *arg, const char *sentence);

/*
 * daemon_memory.c: memory_limit() returns the limit for the memory of this
 * process, or CGROUP_NO_LIMIT. memory_default_staging() returns the default of
 * --staging for a mount whose largest item has item_bytes; that is at least
 * four items. memory_default_limit() returns the default of --limit: 16 MiB, or
 * halved until that staging fits. Two limits depend on
 * staging: memory_gather_bytes() for reads over several items, and
 * memory_inflight_bytes() for requests in flight (0: no limit).
 */
uint64_t memory_limit(void);
uint64_t memory_default_staging(struct store *store, uint64_t item_bytes);
uint64_t memory_default_limit(struct store *store, uint64_t chunk_bytes);
uint64_t memory_gather_bytes(uint64_t staging_bytes);
uint64_t memory_inflight_bytes(uint64_t staging_bytes);
/* If a mount of this many files may need more memory than its limit, call fn()
 * and return true. */
bool limits_of_memory(struct store *store, uint64_t staging_bytes,
	uint64_t files, limit_fn *fn, void *arg);

/* daemon_process.c: fork, unless the mount stays in the foreground. The parent
 * process waits until the child reports that the mount is ready or has
 * failed. */
int process_fork(struct mount *m, struct error *err, bool *parent);
void process_ready(struct mount *m);
void process_failed(struct mount *m, int rc, const struct error *err);
/* Set limits and the signal mask of the process, before other threads exist. */
void process_prepare(void);
/* Start a thread that receives all signals. The first signal that ends the
 * process stops the mount. */
int process_take_signals(struct mount *m, struct error *err);
void process_leave_signals(struct mount *m);
/* Exit at once, although some parts cannot be freed. `why` is the reason if the
 * mount has failed, otherwise NULL. */
void process_leave_at_once(struct mount *m, const struct error *why);
/* Delete the tiers that this mount has created. */
void process_leave_no_tier(struct mount *m);

/*
 * source_scan.c: the background scan, and operations that need all names.
 * saved_load() loads the manifest that a tier has. It creates an empty one if
 * there is none for the source, or if that one has names of another level.
 * saved_recover() recovers the manifest of the previous daemon, or returns
 * -EBADMSG.
 */
int saved_load(const struct saved_manifest *k, const struct stack *stack,
	struct manifest **out, struct error *err);
int saved_recover(const struct saved_manifest *k, const char *source,
	struct hash128 session, int names_fd, struct manifest **out,
	struct error *err);

/* write_levels.c: read the files of an index, and find the levels of the
 * progressive JPEGs. tell() is called several times a second with the numbers
 * of files and bytes read. Blocks. Returns 0, or -errno with err set. */
struct index_row {
	char *path;
	struct file_version version;
	uint64_t level[JPEG_DROP_BITS_MAX]; /* as jpeg_levels() finds them */
};
int index_levels(struct origin *origin, struct index_row *rows, size_t n,
	void (*tell)(void *arg, uint64_t files, uint64_t bytes), void *arg,
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
/* Have the stack probe the source, with functions that read the manifest. The
 * manifest must outlive the origins of the stack. Call this before the scan. */
int scan_probe(
	struct stack *stack, struct manifest *manifest, struct error *err);
int scan_new(struct scan **out, const struct scan_config *config);
void scan_free(struct scan *s); /* NULL is allowed, here and in scan_join() */
int scan_start(struct scan *s, struct error *err);
/* Make the scan, sweeps and walks over items stop soon, because the mount
 * ends. */
void scan_quit(struct scan *s);
/* Wait for the threads of the scan. Call this when the tree has been stopped,
 * because a walk of the scan ends then. */
void scan_join(struct scan *s);
enum scan_state scan_state(const struct scan *s);
/* Get the directories that the last scan could not list. */
void scan_unlisted(struct scan *s, struct tree_walk_result *out);

/* Delete entries that belong to no item of the manifest, which are entries of
 * old versions, and count them as invalidated. If the dataset contains a huge
 * file, all entries of the size of its chunks stay. Call this only when the
 * manifest is known to be right. */
void scan_sweep(struct scan *s);

/* Save the manifest if it has changed. A failure is counted. */
void scan_save(struct scan *s);

/* Called for each item of a file. The walk over the items stops if this returns
 * false or the mount ends. */
typedef bool scan_item_fn(void *arg, const struct cache_item *item);
bool scan_items(struct scan *s, const struct node_info *info, scan_item_fn *fn,
	void *arg);

/* Does the file have so many items that only warming may visit each of them?
 * For example, a sparse file can have a huge size with few bytes on disk. */
bool scan_is_huge(const struct scan *s, const struct node_info *info);

/* compare.c: compares units that came from peers with the bytes of the
 * origin. */
struct compare;
/* Origin and counters must outlive the compare. Returns 0 or -ENOMEM. */
int compare_new(
	struct compare **out, struct origin *origin, struct counters *counters);
void compare_unit(void *arg, struct peers_check *check); /* a peers_check_fn */
/* Give up running comparisons, and wait for their end. Later units get
 * -ECANCELED. */
void compare_stop(struct compare *all);
/* Call compare_stop() before; NULL is allowed */
void compare_free(struct compare *all);

/* peering.c: the memory of other hosts, which is asked after the tiers and
 * before the origin. */
struct peering;
struct peering_config {
	struct peers_config peers;
	/* The origin, the manifest and the tree outlive the peering. */
	struct origin *origin;
	struct manifest *manifest;
	struct tree *tree;
};
int peering_new(struct peering **out, const struct peering_config *config,
	struct error *err);
/* Start to compare the manifest with those of the peers. */
int peering_start(struct peering *p, struct scan *scan, struct error *err);
void peering_quit(
	/* Call this before the tree is freed; NULL is allowed */
	struct peering *p);
/* Call this after cache_free(); NULL is allowed */
void peering_free(struct peering *p);
struct provider *peering_provider(const struct peering *p);
/* Add the status of the peers, which are provider 0 of `cache`, to an
 * object. */
void peering_status(const struct peering *p, struct cache *cache, json_t *o);
void peering_limits(const struct peering *p, limit_fn *fn, void *arg);

/* epoch_status.c: have a cache with this configuration report its misses, to
 * count epochs. pages_bytes is the limit for the kernel's pages of items that
 * missed (0: no limit). Returns 0 or -ENOMEM. */
int mount_count_epochs(struct mount_epochs *e, struct cache_config *config,
	uint64_t pages_bytes);
void status_add_latency(json_t *o, const struct latency *latency);
/* Add what is known about the epoch to an object. dataset_bytes is 0 if it is
 * not known. */
void status_add_epoch(json_t *o, struct mount_epochs *e, struct cache *cache,
	uint64_t dataset_bytes);

/* troubles.c: add the last error of each cause to an object, with its time and
 * whether it persists. Also add for how long the source has not answered. */
void status_add_errors(json_t *o, struct stack *stack, struct log *log);

/* mount_status.c: returns the object of `refrain status --json`; NULL: memory
 * is short. */
json_t *mount_status(struct mount *m);

/* debug_status.c: returns the object of `refrain status --debug`; NULL: memory
 * is short. */
json_t *mount_debug(struct mount *m);

/* control_commands.c: fill in m->commands, the table of the commands of the
 * control socket, and the structs of parts that commands use. Call this when
 * all these parts exist. */
void commands_build(struct mount *m);

/* Commands in other files. The comment names the struct to which `arg`
 * points. */
typedef void mount_command_fn(
	void *arg, struct ctl_conn *conn, const json_t *request);
mount_command_fn command_warm;		       /* struct warming */
mount_command_fn command_trace;		       /* struct tracing */
mount_command_fn command_keys, command_report; /* struct loaders */
mount_command_fn command_plan;		       /* struct loaders */
mount_command_fn command_plan_add, command_plan_progress, command_plan_status,
	command_plan_follow, command_plan_drop; /* `arg` is not used */
mount_command_fn command_upgrade;		/* struct mount */

/* loader_commands.c: add the counts that a loader reports in a request, such as
 * its direct hits, to the counters. Returns 0, or -EINVAL if a count is
 * malformed; then no count was added. */
int report_take(
	struct counters *counters, const json_t *request, struct error *err);

/* If the mount is being analysed, send the peer an error and return true,
 * because the analysis must see all reads of the loader. */
bool loader_refused(const struct loaders *of, struct ctl_conn *conn);

/* Get the array "paths" of a request, or NULL if the request has none. If
 * "paths" is not an array, sends the peer an error and returns false. */
bool command_paths(
	struct ctl_conn *conn, const json_t *request, const json_t **paths);

/* Add the directories that a walk could not list to an object: their number as
 * the member named `number`, and a sentence as "unlisted_why". The object may
 * be NULL. */
void status_add_unlisted(json_t *reply, struct tree *tree, const char *number,
	const struct tree_walk_result *result);

/* loader_commands.c: state of finding the names of one request. */
struct request_names {
	const struct loaders *of;
	bool listed; /* the whole source was listed to find a name */
};

/* Find the node of a name. If the name is not known, the source is listed, at
 * most once in a request. Returns 0, -EINVAL if the name is not a path, or
 * -ENOENT if the source has no such name. */
int names_find(
	struct request_names *n, const json_t *name, struct node_info *info);

#endif

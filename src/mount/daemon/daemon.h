/* SPDX-License-Identifier: MIT */
/*
 * The daemon of one mount: builds the graph of parts from the options, runs
 * it until the mount is gone, and takes it down.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/base/events.h"
#include "origin/peer/peer.h"
#include "origin/layer/stack.h"
#include "mount/store/store.h"

#define MOUNT_LIMIT_BYTES ((uint64_t)16 << 20)
#define MOUNT_STAGING_BYTES ((uint64_t)256 << 20)
#define MOUNT_TIMEOUT_S 120

/* The exit status by which a program says that it can take over. No other
 * program ends with it by chance. */
#define MOUNT_CAN_TAKE_OVER 43

struct mount_hooks;

/* The options of `refrain mount`; the caller owns the strings. */
struct mount_options {
	struct stack_config source;
	const char *mountpoint; /* as typed; may be relative */
	struct tier_config tiers[STORE_TIERS_MAX]; /* fastest first */
	size_t ntiers;
	bool foreground;
	bool held; /* started in the background by refrain-hold */
	/* Only check whether this program could take over */
	bool check;
	char *const *words; /* the command line, for the next program */
	size_t nwords;
	uint64_t limit_bytes; /* largest file that is one item */
	/* Item size of larger files; 0: the origin's default. */
	uint64_t chunk_bytes;
	/* Limit of the staging buffer; 0: what fits in memory, at most
	 * MOUNT_STAGING_BYTES. */
	uint64_t staging_bytes;
	/* Limit for pages of items that passed through; 0: none. */
	uint64_t pages_bytes;
	/* No peers if nhosts is 0. The daemon sets counters and events. If
	 * dataset is NULL, it is the source as the tiers record it. */
	struct peers_config peers;
	unsigned revalidate_s; /* 0: only on refresh */
	bool verify;	       /* hash the blocks of every read */
	bool allow_other;
	/* Hooks of an analysis; NULL: no analysis */
	const struct mount_hooks *hooks;
	/* Group that may use the socket and read the tiers, or NULL. */
	const char *group;
	enum event_level log_level;
	const char *log_file; /* NULL: standard error, or syslog */
	bool log_json;
};

/*
 * Mount, and serve until unmounted or SIGTERM. Returns 0, or -errno with err
 * set and nothing left behind; -EFBIG if a tier is larger than its file system.
 * Unless options say foreground, the daemon runs in the background: the call
 * returns in the parent once the mount is ready or has failed, and never in the
 * child.
 */
int daemon_run(const struct mount_options *options, struct error *err);

/*
 * List a source and write the table of its files, without a mount. progress is
 * called several times a second and at the end. Returns 0, or -errno with err
 * set: the listing or the writing failed.
 */
typedef void index_progress_fn(void *arg, uint64_t files, uint64_t bytes);
int daemon_index(const struct stack_config *source, FILE *out,
	index_progress_fn *progress, void *arg, struct error *err);

#endif

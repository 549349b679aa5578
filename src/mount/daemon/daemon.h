/* SPDX-License-Identifier: MIT */
/*
 * The daemon of one mount: builds the parts of the mount from the options,
 * serves until the file system is unmounted, and takes the parts down.
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
#include "mount/fs/fs_contexts.h"
#include "mount/store/store.h"

#define MOUNT_LIMIT_BYTES ((uint64_t)16 << 20)
#define MOUNT_STAGING_BYTES ((uint64_t)256 << 20)
#define MOUNT_TIMEOUT_S 120

/* The exit status of `refrain mount --check-takeover` if the program can take
 * over the mount. It is a number with which no other program is likely to end.
 */
#define MOUNT_CAN_TAKE_OVER 43

struct mount_hooks;

/* The options of `refrain mount`. The caller owns the strings. */
struct mount_options {
	struct stack_config source;
	const char *mountpoint; /* as given by the user; may be relative */
	struct tier_config tiers[STORE_TIERS_MAX]; /* fastest first */
	size_t ntiers;
	/* The root of one more tier, which comes last; the daemon sets `dir`.
	 * `root` is NULL if there is none. */
	struct tier_config root;
	const char *keep_free; /* limit for all tiers, or NULL */
	bool foreground;
	bool held; /* refrain-hold has started this process in the background */
	/* Only check whether this program could take over */
	bool check;
	/* the command line, for the program of an upgrade */
	char *const *words;
	size_t nwords;
	/* Maximum size of a file that is one item; 0: MOUNT_LIMIT_BYTES, or
	 * less if memory is short. */
	uint64_t limit_bytes;
	/* Size of the items of larger files; 0: the origin's default. */
	uint64_t chunk_bytes;
	/* Limit of staging; 0: as much as memory allows, up to
	 * MOUNT_STAGING_BYTES. */
	uint64_t staging_bytes;
	/* Limit for the kernel's pages of items in no tier; 0: no limit. */
	uint64_t pages_bytes;
	/* If nhosts is 0, there are no peers. The daemon sets counters and
	 * events. A dataset of NULL stands for the source, as the tiers record
	 * it. */
	struct peers_config peers;
	/* 0: names are checked again only by a refresh */
	unsigned revalidate_s;
	bool verify; /* verify the blocks of every read */
	bool allow_other;
	struct fs_contexts contexts;
	/* Hooks of an analysis; NULL: no analysis */
	const struct mount_hooks *hooks;
	/* Group that may use the socket and read the tiers, or NULL. */
	const char *group;
	enum event_level log_level;
	const char *log_file; /* NULL: write to standard error, or to syslog */
	bool log_json;
};

/*
 * Mount, and serve until the file system is unmounted or SIGTERM arrives.
 * Returns 0; or -errno with err set, and with everything removed that was
 * created. The error is -EFBIG if a tier is larger than its file system. Unless
 * the options say foreground, the daemon runs in the background: then the call
 * returns in the parent process when the mount is ready or has failed, and
 * never in the child.
 */
int daemon_run(const struct mount_options *options, struct error *err);

/*
 * List a source, and write the table of its files, without a mount. found() is
 * called several times a second and at the end with the numbers of files and
 * bytes that have been found. If read() is not NULL, the files are then read
 * once for their levels, and read() is called alike. Returns 0, or -errno with
 * err set if the source could not be listed or read, or the table not written.
 */
struct index_progress {
	void (*found)(void *arg, uint64_t files, uint64_t bytes);
	void (*read)(void *arg, uint64_t files, uint64_t bytes);
	void *arg;
};
int daemon_index(const struct stack_config *source, FILE *out,
	const struct index_progress *progress, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Hooks of a mount under analysis. The mount calls the analysis only through
 * these functions, because the analysis is on a floor above the mount, and
 * lower floors include nothing of higher ones. */
#ifndef DAEMON_MOUNT_HOOKS_H
#define DAEMON_MOUNT_HOOKS_H

#include "common/base/counters.h"
#include "common/base/err.h"
#include "mount/cache/cache.h"
#include "mount/daemon/control_server.h"
#include "mount/fs/fs.h"
#include "mount/fs/pages.h"
#include "mount/names/manifest.h"
#include "mount/store/store.h"

/* Parts of the mount, which outlive its last reader. */
struct mount_parts {
	const char *mountpoint;
	struct counters *counters;
	struct store *store;
	struct manifest *manifest;
	/* The cache and the pages are NULL in begin(), and are set before a
	 * reader comes. */
	struct cache *cache;
	struct pages *pages;
};

struct mount_hooks {
	/* Called once, before any other hook. */
	int (*begin)(
		void *arg, const struct mount_parts *parts, struct error *err);
	/* Called when a loader wanted to read without the mount, from entries,
	 * or wanted to send a plan, and was refused. */
	void (*refused)(void *arg);
	/* Commands of the control socket. The last element has no name. */
	const struct ctl_command *commands;
	/* Hooks of the cache, of the FUSE front and of the kernel's pages. */
	const struct cache_mask *mask;
	const struct fs_read_hook *read_hook;
	const struct pages_keeper *keeper;
	uint64_t whole_max_bytes; /* as in struct pages_config */
	void *arg;
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The FUSE front: mounts the file system, reads the kernel's requests, and
 * answers them from the tree and the cache. It is the only part that uses
 * libfuse. Always read-only, nosuid, nodev, default_permissions.
 */
#ifndef FS_H
#define FS_H

#include <stdbool.h>

#include "common/base/err.h"
#include "mount/cache/cache.h"
#include "mount/names/manifest.h"
#include "mount/fs/fs_session.h"
#include "mount/plan/prefetch.h"
#include "mount/names/tree.h"

struct fs;

/* Sees the READs of a mount that is analysed. */
struct fs_read_hook {
	/*
	 * Called for each READ of bytes [off, off + len) of a file, before it
	 * is answered. Returns true if it has written the answer to buf.
	 * `thread` is the reading thread; 0 if it is in a PID namespace that is
	 * not visible here.
	 */
	bool (*read)(void *arg, const struct cache_item *item, uint64_t off,
		size_t len, void *buf, pid_t thread);
	void *arg;
};

struct fs_config {
	struct manifest *manifest; /* this and the next five outlive the fs */
	struct tree *tree;
	struct cache *cache;
	struct prefetch *prefetch;
	struct plans *plans;
	/* Not NULL. If the session continues a connection, nothing is
	 * mounted. */
	struct session *session;
	/* If it continues: the previous process's journal, or -1 */
	int journal;
	const char *source;	/* shown by mount(8) */
	const char *mountpoint; /* a directory, or a given connection */
	const char *control;	/* path of the socket, shown as an xattr */
	bool allow_other;
	/* Limit of memory for reads over several items */
	uint64_t gather_bytes;
	unsigned revalidate_s;
	struct counters *counters;
	const struct event_sink *events;      /* may be NULL */
	const struct fs_read_hook *read_hook; /* NULL except in an analysis */
};

/*
 * Mount. On failure nothing is left behind, and err says what to do, for
 * example if /dev/fuse is absent, permission is missing, or allow_other is not
 * allowed.
 */
int fs_mount(
	struct fs **out, const struct fs_config *config, struct error *err);

/*
 * Serve until the file system is unmounted or fs_exit() is called. ready() is
 * called once, after the handshake with the kernel and before any other request
 * is answered.
 */
int fs_run(
	struct fs *fs, void (*ready)(void *arg), void *arg, struct error *err);

/* Make fs_run() return; any thread. */
void fs_exit(struct fs *fs);

/* fs_unmount() unmounts, lazily if files are open. Call fs_free() after it,
 * when no thread calls fs_limits() any more. NULL is allowed. */
void fs_unmount(struct fs *fs);
void fs_free(struct fs *fs);

/*
 * fs_can_be_held(): can another process continue with the connection? Requests
 * that this process has read but not answered are either sent again by the
 * kernel, or are in shared memory. fs_journal() returns the descriptor of that
 * memory; -1: there is none.
 */
bool fs_can_be_held(const struct fs *fs);
int fs_journal(const struct fs *fs);

/* Is this what fs_journal() of another process returned, and not damaged? What
 * the requests say is not known. */
bool fs_journal_valid(int fd);

/* The descriptor of the connection; valid until fs_free(). */
int fs_connection(const struct fs *fs);

/* Drop kernel caches. Only the tree's thread may call these, because they can
 * block. */
void fs_forget_name(struct fs *fs, node_id dir, const char *name);
void fs_forget_attr(struct fs *fs, node_id id);

/* The number of reads over several items that wait for memory. */
unsigned fs_reads_waiting(const struct fs *fs);

/* The kernel's read-ahead in KiB (0: not known yet). */
unsigned fs_read_ahead_kib(struct fs *fs);

/*
 * Get sentences about settings that slow the mount down, and how to change
 * them. Returns their number, at most max. The sentences are valid until
 * fs_free().
 */
size_t fs_limits(struct fs *fs, const char **sentence, size_t max);

/*
 * The descriptor that "/dev/fd/N" names; -1 for any other path. Such a
 * connection was opened by another program, which has mounted it and will
 * unmount it; the fs does neither.
 */
int fs_given_connection(const char *mountpoint);

/* Check that this descriptor is a connection to the kernel. Returns 0, -EBADF
 * if it is not open, or -ENODEV if it is something else, with err set. */
int fs_check_connection(int fd, struct error *err);

/* Find out what is mounted at a path. Returns 0 for nothing, 1 for a live
 * refrain mount, -ENOTCONN for a dead FUSE mount, -EBUSY for something else. */
int fs_probe(const char *mountpoint);

#endif

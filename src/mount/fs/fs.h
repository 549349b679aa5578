/* SPDX-License-Identifier: MIT */
/*
 * The FUSE front: mounts the file system, reads the kernel's requests, and
 * answers them from the tree and the cache. No other part uses libfuse. A mount
 * is always read-only, nosuid, nodev and default_permissions.
 */
#ifndef FS_H
#define FS_H

#include <stdbool.h>

#include "common/base/err.h"
#include "mount/cache/cache.h"
#include "mount/names/manifest.h"
#include "mount/fs/fs_contexts.h"
#include "mount/fs/fs_session.h"
#include "mount/plan/prefetch.h"
#include "mount/names/tree.h"

struct agent;
struct fs;

/* Sees the READs of a mount under analysis. */
struct fs_read_hook {
	/*
	 * Called for each READ of bytes [off, off + len) of a file, before it
	 * is answered. Returns true if the hook has written the answer to buf.
	 * `thread` is the reading thread, or 0 if the thread is in a PID
	 * namespace that is not visible here.
	 */
	bool (*read)(void *arg, const struct cache_item *item, uint64_t off,
		size_t len, void *buf, pid_t thread);
	void *arg;
};

struct fs_config {
	/* The manifest, the tree, the cache, the prefetch, the plans and the
	 * session must outlive the fs. */
	struct manifest *manifest;
	struct tree *tree;
	struct cache *cache;
	struct prefetch *prefetch;
	struct plans *plans;
	/* Not NULL. If the session continues a connection, fs_mount() mounts
	 * nothing. */
	struct session *session;
	/* If the session continues a connection: the journal of the previous
	 * process, or -1 */
	int journal;
	/* The agent that notifies the kernel of changed names; it outlives the
	 * fs. NULL: the fs notifies the kernel itself */
	struct agent *notifier;
	const char *source; /* shown by mount(8) */
	/* a directory, or /dev/fd/N for a connection that another program has
	 * opened */
	const char *mountpoint;
	const char *control; /* path of the socket, shown as an xattr */
	bool allow_other;
	struct fs_contexts contexts;
	/* Limit of memory for reads over several items */
	uint64_t gather_bytes;
	unsigned revalidate_s;
	struct counters *counters;
	const struct event_sink *events;      /* may be NULL */
	const struct fs_read_hook *read_hook; /* NULL except in an analysis */
};

/* Mount. On failure nothing stays mounted or open, and err says what to do:
 * /dev/fuse may be absent, permission may be missing, or allow_other may be
 * forbidden. */
int fs_mount(
	struct fs **out, const struct fs_config *config, struct error *err);

/* Serve until the file system is unmounted or fs_exit() is called. ready() is
 * called once, after the handshake with the kernel and before any other request
 * is answered. */
int fs_run(
	struct fs *fs, void (*ready)(void *arg), void *arg, struct error *err);

/* Make fs_run() return. Any thread may call this. */
void fs_exit(struct fs *fs);

/* fs_unmount() unmounts, lazily if files are open. Call fs_free() after it,
 * when no thread calls fs_limits() any more; fs_free() frees the fs. NULL is
 * allowed in both. */
void fs_unmount(struct fs *fs);
void fs_free(struct fs *fs);

/* fs_can_be_held(): can another process continue with the connection? It can in
 * two cases: the kernel can send the unanswered requests again, or the requests
 * are in shared memory (the journal). fs_journal() returns the descriptor of
 * that memory; -1: there is none. */
bool fs_can_be_held(const struct fs *fs);
int fs_journal(const struct fs *fs);

/* Is this descriptor an undamaged journal of another process, which
 * fs_journal() returned there? The requests in it are not checked. */
bool fs_journal_valid(int fd);
/* Can this program read the journal? Unlike for fs_journal_valid(), the journal
 * may be in use. */
bool fs_journal_known(int fd);

/* Returns the descriptor of the connection, which is valid until fs_free(). */
int fs_connection(const struct fs *fs);

/* Drop kernel caches. Only the tree's thread may call these, because they can
 * block. */
void fs_forget_name(struct fs *fs, node_id dir, const char *name);
void fs_forget_attr(struct fs *fs, node_id id);

/* Returns the number of reads over several items that wait for memory. */
unsigned fs_reads_waiting(const struct fs *fs);

/* Returns the kernel's read-ahead in KiB; 0: not known yet. */
unsigned fs_read_ahead_kib(struct fs *fs);

/* Get sentences about settings that slow the mount down and about how to change
 * them. Returns their number, which is at most max. The sentences are valid
 * until fs_free(). */
size_t fs_limits(struct fs *fs, const char **sentence, size_t max);

/* If the path is "/dev/fd/N", returns the descriptor N of a connection that
 * another program has opened and mounted, and will unmount; then the fs neither
 * mounts nor unmounts. Returns -1 for any other path. */
int fs_given_connection(const char *mountpoint);

/* Check that this descriptor is a connection to the kernel. Returns 0; or with
 * err set, -EBADF if it is not open, or -ENODEV if it is something else. */
int fs_check_connection(int fd, struct error *err);

/* Find out what is mounted at a path. Returns 0 for nothing, 1 for a live
 * refrain mount, -ENOTCONN for a dead FUSE mount, or -EBUSY for another file
 * system. */
int fs_probe(const char *mountpoint);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The manifest: every known name of a dataset with its attributes. A mount
 * answers requests from it. The manifest does no I/O except to save and load
 * itself: callers enter the answers of the origin, and get the resulting
 * changes.
 *
 * A node is one version of one file, or a directory, or a link. When a file
 * changes at the origin, its name gets a new node. The old node is *retired*:
 * it has no name any more, but keeps its attributes until its last reference is
 * dropped. Node numbers are small, dense and reused. A node can get a new
 * version only if its file has not been read: manifest_follow().
 *
 * Any thread may call; a reader-writer lock in the manifest guards the names.
 * The identity of a referenced node (version, inode number, path digest) does
 * not change after the first read of the file, so no lock is needed to read the
 * identity.
 */
#ifndef NAMES_MANIFEST_H
#define NAMES_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/attr.h"
#include "common/base/err.h"
#include "common/base/hash.h"

struct manifest;

typedef uint32_t node_id; /* 0: no node */
#define NODE_ROOT ((node_id)1)

/* Size of a buffer for the longest path that a manifest accepts, with its
 * NUL. */
#define MANIFEST_PATH_MAX 8192

/* A copy of the attributes of one node. */
struct node_info {
	node_id id;
	/* Inode number; the same after a remount, new for each version */
	uint64_t ino;
	struct hash128 digest; /* file: digest of the path, to compute keys */
	struct file_attr attr;
	bool listed;  /* directory: all its names are known */
	bool retired; /* the node has no name any more */
	uint64_t
		/* Time at which the origin last confirmed the node, by the
		 * monotonic clock */
		checked_s;
};

/* How one name has changed. Strings of an event are valid during the call. */
enum manifest_change {
	MANIFEST_SAME,
	MANIFEST_ADDED,
	MANIFEST_ATTR,	   /* the same version with another mode or owner */
	MANIFEST_REPLACED, /* a new node has the name; `old` was retired */
	MANIFEST_FOLLOWED, /* the node has a new version */
	MANIFEST_REMOVED,  /* the name is gone; `old` was retired */
};

struct manifest_event {
	enum manifest_change change;
	node_id dir; /* the directory of the name */
	const char *name;
	node_id id; /* the node that has the name now; 0: none */
	bool seen;  /* the kernel may know that this name did not exist */
	/* The node before the change; not set for ADDED */
	struct node_info old;
};

/* Called with the manifest's lock held for writing, so it only copies the event
 * for later. When a directory is removed, this is called for the directory and
 * for every node below it, deepest first. */
typedef void manifest_event_fn(void *arg, const struct manifest_event *ev);

/* Create a manifest that contains only the root. Returns 0 or -ENOMEM. */
int manifest_new(struct manifest **out, const char *dataset);
void manifest_free(struct manifest *m);

/* Returns the digest of the source, for keys. */
struct hash128 manifest_dataset(const struct manifest *m);

/* -- Queries ------------------------------------------------------------ */

/* Get the attributes of a node. Returns 0, or -ESTALE if there is no such
 * node. */
int manifest_get(struct manifest *m, node_id id, struct node_info *info);

/* Get the identity of the content of a file. This takes no lock, because every
 * read calls it; the caller must hold a reference to the node. Returns false if
 * the node is not a file. */
bool manifest_identity(const struct manifest *m, node_id id,
	struct hash128 *digest, struct file_version *version);

/* Call this before bytes of this version are given to a reader of the node.
 * The node keeps its version from this call on. Returns false if the node has
 * another version now; then these bytes must not be used. Takes no lock. */
bool manifest_serve(const struct manifest *m, node_id id,
	const struct file_version *version);

/* Find a name. Returns 0; -ENOENT if the name is not known (the directory may
 * not be `listed`); -ENOTDIR; or -ESTALE if there is no such directory. With
 * `ref` the node gets a reference; see manifest_unref(). */
int manifest_lookup(struct manifest *m, node_id dir, const char *name, bool ref,
	struct node_info *info);

/* Find a path relative to the root; "" is the root. Otherwise like
 * manifest_lookup() without `ref`. */
int manifest_resolve(
	struct manifest *m, const char *path, struct node_info *info);

/* Get the path of a node relative to the root, or the last path of a retired
 * node. Returns the length, or -ENAMETOOLONG. */
int manifest_path(struct manifest *m, node_id id, char *path, size_t size);

/* Get the target of a link. Returns the length, -EINVAL if the node is not a
 * link, -ESTALE if there is no such node, or -ENAMETOOLONG. */
int manifest_target(struct manifest *m, node_id id, char *target, size_t size);

/* Returns the directory that contains a node or, for a retired node, contained
 * it. The parent of the root is the root. */
node_id manifest_parent(struct manifest *m, node_id id);

/*
 * List the names of a directory from slot `pos` on. fn gets each name and the
 * next slot, and returns false to stop the listing. Slots stay valid while the
 * directory changes. With `ref` each node for which fn returned true gets a
 * reference. Returns 0, -ESTALE or -ENOTDIR.
 */
typedef bool manifest_name_fn(void *arg, const char *name,
	const struct node_info *info, uint64_t next_pos);
int manifest_readdir(struct manifest *m, node_id dir, uint64_t pos, bool ref,
	manifest_name_fn *fn, void *arg);

/* Returns a number that is larger than all node numbers. To visit all nodes,
 * call manifest_get() for each smaller number. */
node_id manifest_end(struct manifest *m);

/* Is `id` the directory `top` or below it, and not retired? */
bool manifest_is_under(struct manifest *m, node_id id, node_id top);

struct manifest_totals {
	uint64_t files, directories, links;
	uint64_t bytes; /* size of all files */
};
void manifest_totals(struct manifest *m, struct manifest_totals *totals);

/* -- References --------------------------------------------------------- */

/* Take a reference. The number of a node is not reused while the node has
 * references, even if it is retired. Returns false if there is no such node. */
bool manifest_ref(struct manifest *m, node_id id);

/* Drop n references, because the kernel has forgotten the node n times. A
 * retired node is freed with its last reference. */
void manifest_unref(struct manifest *m, node_id id, uint64_t n);

/* -- Changes ------------------------------------------------------------ */

/*
 * Enter the origin's answer about one name: create, keep or replace its node.
 * now_s is the time of the answer. With `ref` the node gets a reference. info
 * and fn may be NULL. Returns 0; -ENOMEM; -E2BIG if the names take more memory
 * than names_memory_bytes(); -ESTALE if there is no such directory;
 * -ENAMETOOLONG for a path longer than MANIFEST_PATH_MAX; or -EINVAL for a name
 * that no directory can contain ("", ".", "..", with '/', over 255 bytes).
 */
int manifest_put(struct manifest *m, node_id dir,
	const struct file_entry *entry, uint64_t now_s, bool ref,
	struct node_info *info, manifest_event_fn *fn, void *arg);

/* Like manifest_put(), but returns -EISDIR if a directory has the same name as
 * the file. */
int manifest_put_beside(struct manifest *m, node_id dir,
	const struct file_entry *file, uint64_t now_s, manifest_event_fn *fn,
	void *arg);

/* Give a node the new version of its file, if the file has not been read and
 * its size is the same. Returns 0, or -ESTALE if that is not possible. */
int manifest_follow(struct manifest *m, node_id dir, const char *name,
	const struct file_attr *attr, manifest_event_fn *fn, void *arg);

/* Note that the kernel knows that a name is missing in this directory. */
void manifest_negative(struct manifest *m, node_id dir);

/* Note that the origin has confirmed a node at now_s. */
void manifest_checked(struct manifest *m, node_id id, uint64_t now_s);

/* Set the attributes of the root, which has no name. */
void manifest_put_root(struct manifest *m, const struct file_attr *attr);

/* Remove a name. Returns 0 even if the name did not exist. */
int manifest_remove(struct manifest *m, node_id dir, const char *name,
	manifest_event_fn *fn, void *arg);

/* To enter a listing, begin it, put every name, and end it. manifest_list_end()
 * removes names that were not put since the beginning, and sets `listed` of the
 * directory. */
uint32_t manifest_list_begin(struct manifest *m);
int manifest_list_end(struct manifest *m, node_id dir, uint32_t stamp,
	manifest_event_fn *fn, void *arg);

/* -- The saved manifest ------------------------------------------------- */

/* The name of the saved manifest in its directory. */
#define MANIFEST_FILE "manifest"

/* Write the manifest to MANIFEST_FILE in a directory, in the format of
 * doc/formats.md. The new file replaces the old one when it is complete.
 * Returns 0 or -errno. */
int manifest_save(struct manifest *m, int dirfd);

/*
 * Fill an empty manifest from the file of manifest_save(), and delete leftovers
 * of a save that was killed. No save may be running in the directory. Returns
 * 0; -ENOENT if there is no file; -EBADMSG if the file is damaged or has
 * another version or dataset; -ENOMEM; or the -errno of a failed read. After
 * -EBADMSG the manifest may be partly filled and must be freed.
 */
int manifest_load(struct manifest *m, int dirfd);

/* -- Continuing after the end of a process ------------------------------ */

/*
 * Record every change from now on in shared memory, together with the session,
 * so that another process can continue with the same node numbers. Call this
 * once, after the manifest was loaded. Returns the descriptor of the memory,
 * which the manifest owns, or -errno.
 */
int manifest_record(struct manifest *m, struct hash128 session);

/*
 * Fill an empty manifest with the names and node numbers of the previous
 * process: from the file in the directory, and from the descriptor that
 * manifest_record() returned in that process. This manifest owns the descriptor
 * from now on, and continues the record. No node is freed before the manifest.
 * Returns 0, or -EBADMSG if something is damaged, missing, or belongs to
 * another session; then the manifest must be freed.
 */
int manifest_recover(
	struct manifest *m, int dirfd, struct hash128 session, int fd);

/* Check whether this program can continue such a record. Returns 0, or -EBADMSG
 * with err set. */
int manifest_check(int fd, struct error *err);

/* Is every change so far recorded or saved? */
bool manifest_is_recorded(struct manifest *m);

/* Call full() with the lock held when the record has become so long that the
 * manifest should be saved. */
void manifest_when_full(struct manifest *m, void (*full)(void *arg), void *arg);

/* Returns the trail offset of the latest change. A manifest_event_fn may call
 * this. */
uint64_t manifest_trail(const struct manifest *m);

/* manifest_told() notes that all changes before this offset of the record have
 * been acted on, for example by notifying the kernel. After manifest_recover(),
 * manifest_untold() reports all other changes to fn again. */
void manifest_told(struct manifest *m, uint64_t at);
void manifest_untold(struct manifest *m, manifest_event_fn *fn, void *arg);

#endif

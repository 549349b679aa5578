/* SPDX-License-Identifier: MIT */
/*
 * The manifest: every known name of a dataset with its attributes. A mount
 * answers from it. It does no I/O itself, except to save and load it: callers
 * enter the origin's answers and receive the resulting changes.
 *
 * A node is one version of one file (or a directory, or a link). When the
 * origin's file changes, its name gets a new node. The old node is *retired*:
 * it has no name any more, but keeps its attributes until its last reference is
 * dropped. Node numbers are small, dense and reused. A node can get another
 * version only if it has not been read: manifest_follow().
 *
 * Any thread may call; a reader-writer lock inside guards the names. The
 * identity of a referenced node (version, inode number, path digest) does not
 * change after the first read of the file, and needs no lock.
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

/* Room for the longest path that a manifest accepts, NUL included. */
#define MANIFEST_PATH_MAX 8192

/* A copy of the attributes of one node. */
struct node_info {
	node_id id;
	/* The same after a remount; new for a new version */
	uint64_t ino;
	struct hash128 digest; /* of a file's path, to compute keys */
	struct file_attr attr;
	bool listed;  /* directory: all of its names are known */
	bool retired; /* the name now stands for something else */
	uint64_t
		checked_s; /* monotonic time at which the origin confirmed it */
};

/* The change of one name. Strings are valid during the call. */
enum manifest_change {
	MANIFEST_SAME,
	MANIFEST_ADDED,
	MANIFEST_ATTR,	   /* same version, other mode or owner */
	MANIFEST_REPLACED, /* a new version: `old` was retired */
	MANIFEST_FOLLOWED, /* a new version of the same node */
	MANIFEST_REMOVED,  /* `old` was retired */
};

struct manifest_event {
	enum manifest_change change;
	node_id dir; /* directory of the name */
	const char *name;
	node_id id; /* the node now; 0 when removed */
	bool seen;  /* a caller may have been told that the name was missing */
	struct node_info old; /* state before the change; not for ADDED */
};

/*
 * Called with the manifest's lock held for writing, so copy what is needed and
 * act later. When a directory is removed, it is also called for every node
 * below it, deepest first.
 */
typedef void manifest_event_fn(void *arg, const struct manifest_event *ev);

/* Create a manifest that holds only the root. Returns -ENOMEM. */
int manifest_new(struct manifest **out, const char *dataset);
void manifest_free(struct manifest *m);

/* The digest of the dataset's source, for keys. */
struct hash128 manifest_dataset(const struct manifest *m);

/* -- Looking ------------------------------------------------------------ */

/* Returns -ESTALE if there is no such node. */
int manifest_get(struct manifest *m, node_id id, struct node_info *info);

/*
 * Get the identity of a file's bytes. It is on the hot path and takes no lock;
 * the caller must hold a reference to the node. Returns false if the node is
 * not a file.
 */
bool manifest_identity(const struct manifest *m, node_id id,
	struct hash128 *digest, struct file_version *version);

/*
 * Call this before bytes of this version are given to a reader of the node:
 * from then on the node keeps its version. Returns false if the node has
 * another version by now, so that these bytes must not be used. Takes no lock.
 */
bool manifest_serve(const struct manifest *m, node_id id,
	const struct file_version *version);

/*
 * Find a name. Returns 0; -ENOENT if no such name is known (check `listed` of
 * the directory); -ESTALE if there is no such directory. With `ref` the node
 * gets a reference; see manifest_unref().
 */
int manifest_lookup(struct manifest *m, node_id dir, const char *name, bool ref,
	struct node_info *info);

/* Find a relative path ("" is the root); otherwise like manifest_lookup(). */
int manifest_resolve(
	struct manifest *m, const char *path, struct node_info *info);

/* Get the path of a node relative to the root; for a retired node, its last
 * path. Returns the length, or -ENAMETOOLONG. */
int manifest_path(struct manifest *m, node_id id, char *path, size_t size);

/* Get the target of a link. Returns its length, -EINVAL if the node is not a
 * link, -ESTALE if there is no such node, or -ENAMETOOLONG. */
int manifest_target(struct manifest *m, node_id id, char *target, size_t size);

/* The directory that a node is or was in; the root's is the root. */
node_id manifest_parent(struct manifest *m, node_id id);

/*
 * List the names of a directory from slot `pos` on. fn gets each name and
 * the next slot, and returns false to stop. Slots stay valid while
 * a directory changes. With `ref` each node for which fn returned true gets a
 * reference. Returns -ESTALE or -ENOTDIR.
 */
typedef bool manifest_name_fn(void *arg, const char *name,
	const struct node_info *info, uint64_t next_pos);
int manifest_readdir(struct manifest *m, node_id dir, uint64_t pos, bool ref,
	manifest_name_fn *fn, void *arg);

/* Node numbers are below this; walk them with manifest_get(). */
node_id manifest_end(struct manifest *m);

/* Is `id` below (or equal to) the directory `top`, and not retired? */
bool manifest_is_under(struct manifest *m, node_id id, node_id top);

struct manifest_totals {
	uint64_t files, directories, links;
	uint64_t bytes; /* of all files */
};
void manifest_totals(struct manifest *m, struct manifest_totals *totals);

/* -- References --------------------------------------------------------- */

/* Take a reference. The node's number is not reused while there are references,
 * even if the node is retired. Returns false if there is no such node. */
bool manifest_ref(struct manifest *m, node_id id);

/* Drop n references, after the kernel has forgotten the node n times. A retired
 * node is freed with its last reference. */
void manifest_unref(struct manifest *m, node_id id, uint64_t n);

/* -- Changing ----------------------------------------------------------- */

/*
 * Enter the origin's answer about one name: create, keep or replace its node.
 * now_s is the time of the answer. Returns 0, -ENOMEM, -E2BIG (more names than
 * names_memory_bytes() has room for), -ESTALE (no such directory),
 * -ENAMETOOLONG for a path over MANIFEST_PATH_MAX, -EINVAL for a name that no
 * directory can hold ("", ".", "..", with '/', over 255 bytes). With `ref` the
 * node gets a reference. info and fn may be NULL.
 */
int manifest_put(struct manifest *m, node_id dir,
	const struct file_entry *entry, uint64_t now_s, bool ref,
	struct node_info *info, manifest_event_fn *fn, void *arg);

/* Put a file, unless a directory has its name: -EISDIR. */
int manifest_put_beside(struct manifest *m, node_id dir,
	const struct file_entry *file, uint64_t now_s, manifest_event_fn *fn,
	void *arg);

/* Give a node the source's new version of its file, if it has not been read and
 * the size is the same. Returns 0, or -ESTALE if that is not possible. */
int manifest_follow(struct manifest *m, node_id dir, const char *name,
	const struct file_attr *attr, manifest_event_fn *fn, void *arg);

/* Note that a caller was told that the directory lacks a name. */
void manifest_negative(struct manifest *m, node_id dir);

/* Note that the origin confirmed a node at now_s. */
void manifest_checked(struct manifest *m, node_id id, uint64_t now_s);

/* Set the attributes of the root, which has no name. */
void manifest_put_root(struct manifest *m, const struct file_attr *attr);

/* Remove a name. Returns 0 even if it did not exist. */
int manifest_remove(struct manifest *m, node_id dir, const char *name,
	manifest_event_fn *fn, void *arg);

/*
 * To enter a listing, begin it, put every name, and end it. The end removes
 * names that were not put since the begin, and sets `listed` of the directory.
 */
uint32_t manifest_list_begin(struct manifest *m);
int manifest_list_end(struct manifest *m, node_id dir, uint32_t stamp,
	manifest_event_fn *fn, void *arg);

/* -- Keeping ------------------------------------------------------------ */

/* The name of the file in its directory. */
#define MANIFEST_FILE "manifest"

/*
 * Write the manifest to MANIFEST_FILE in a directory, in the format of
 * doc/formats.md. A new file replaces the old one when it is complete. Returns
 * 0 or -errno.
 */
int manifest_save(struct manifest *m, int dirfd);

/*
 * Fill an empty manifest from a file that manifest_save() wrote, and remove
 * leftovers of a killed save. No save may be running there. Returns 0; -ENOENT
 * if there is no file; -EBADMSG if it is damaged or of another version or
 * dataset; -ENOMEM, or another -errno of a failed read. After -EBADMSG the
 * manifest may be partly filled and must be freed.
 */
int manifest_load(struct manifest *m, int dirfd);

/* -- Going on after the process ----------------------------------------- */

/*
 * Record every change from now on in shared memory, marked with the session, so
 * that another process can continue with the same node numbers. Call it once,
 * after the load. Returns the descriptor of the memory, which the manifest
 * owns, or -errno.
 */
int manifest_record(struct manifest *m, struct hash128 session);

/*
 * Fill an empty manifest as the previous process had it: from the file in the
 * directory, and from the descriptor that its manifest_record() returned, which
 * this manifest owns from now on. Changes continue to be recorded. All nodes
 * are kept until the manifest is freed. Returns -EBADMSG if something is
 * damaged, missing, or of another session; then the manifest must be freed.
 */
int manifest_recover(
	struct manifest *m, int dirfd, struct hash128 session, int fd);

/* Check whether this program could continue such a record. Returns 0, or
 * -EBADMSG with err set. */
int manifest_check(int fd, struct error *err);

/* Is every change so far recorded or saved? */
bool manifest_is_recorded(struct manifest *m);

/* Call full(), with the lock held, when so much has been recorded that the
 * manifest should be saved. */
void manifest_when_full(struct manifest *m, void (*full)(void *arg), void *arg);

/* The trail offset of the latest change, for use in a manifest_event_fn. */
uint64_t manifest_trail(const struct manifest *m);

/* Note that the consequences of all changes before this offset of the record
 * have been acted on. After manifest_recover(), manifest_untold() repeats the
 * other changes. */
void manifest_told(struct manifest *m, uint64_t at);
void manifest_untold(struct manifest *m, manifest_event_fn *fn, void *arg);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The manifest: every known name of a dataset with its attributes. It is the
 * truth that a mount answers from. No I/O happens here: others feed it what
 * an origin says and are told what changed.
 *
 * A node is one version of one file (or a directory, or a link). When the
 * origin's file changes, its name gets a new node; the old one is *retired*:
 * it has no name any more but keeps its attributes for as long as somebody
 * holds a reference. Node numbers are small, dense and reused. Only a node
 * that nobody has read a byte of can get another version: manifest_follow().
 *
 * Any thread may call; a reader-writer lock inside guards the names. The
 * identity of a referenced node (version, inode number, path digest) does not
 * change once it was read from, and is read without a lock.
 */
#ifndef MANIFEST_MANIFEST_H
#define MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/hash.h"

struct manifest;

typedef uint32_t node_id; /* 0: no node */
#define NODE_ROOT ((node_id)1)

/* Room for the longest path that a manifest accepts, NUL included. */
#define MANIFEST_PATH_MAX 8192

/* A copy of what is known of one node. */
struct node_info {
	node_id id;
	uint64_t ino;	       /* stable over remounts; new for a new version */
	struct hash128 digest; /* of the path, for keys */
	struct file_attr attr;
	bool listed;	    /* directory: all of its names are known */
	bool retired;	    /* the name now stands for something else */
	uint64_t checked_s; /* monotonic, when the origin vouched for it */
};

/* What a change did to one name. Strings are lent for the call. */
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
	node_id dir; /* where the name is */
	const char *name;
	node_id id; /* the node now; 0 when removed */
	bool seen;  /* somebody may remember that the name was missing */
	struct node_info old; /* before; not of ADDED */
};

/*
 * Called with the manifest's lock held for writing: copy what is needed and
 * act later. For a removed directory: once for every node below it, too
 * (deepest first).
 */
typedef void manifest_event_fn(void *arg, const struct manifest_event *ev);

/* A manifest that holds the root alone. -ENOMEM. */
int manifest_new(struct manifest **out, const char *dataset);
void manifest_free(struct manifest *m);

/* The digest of the dataset's source, for keys. */
struct hash128 manifest_dataset(const struct manifest *m);

/* -- Looking ------------------------------------------------------------ */

/* -ESTALE if there is no such node. */
int manifest_get(struct manifest *m, node_id id, struct node_info *info);

/*
 * What names the bytes of a file, for the hot path: takes no lock; the caller
 * holds a reference to the node. False if it is no file.
 */
bool manifest_identity(const struct manifest *m, node_id id,
	struct hash128 *digest, struct file_version *version);

/*
 * Bytes of this version are about to be given to a reader of the node, which
 * keeps it from then on. False: it has another one by now, and these bytes are
 * not to be used. Takes no lock.
 */
bool manifest_serve(const struct manifest *m, node_id id,
	const struct file_version *version);

/*
 * Find a name. 0, or -ENOENT (nobody has this name as far as is known: look
 * at `listed` of the directory), or -ESTALE (no such directory), or -ENOTDIR.
 * With `ref` the node found gets a reference; see manifest_unref().
 */
int manifest_lookup(struct manifest *m, node_id dir, const char *name, bool ref,
	struct node_info *info);

/* Find a relative path ("" is the root); as manifest_lookup(). */
int manifest_resolve(
	struct manifest *m, const char *path, struct node_info *info);

/*
 * The path of a node, relative to the root; of a retired one as it was.
 * Length, or -ENAMETOOLONG.
 */
int manifest_path(struct manifest *m, node_id id, char *path, size_t size);

/* The target of a link: length, -EINVAL for no link, -ENAMETOOLONG. */
int manifest_target(struct manifest *m, node_id id, char *target, size_t size);

/* The directory that a node is or was in; the root's is the root. */
node_id manifest_parent(struct manifest *m, node_id id);

/*
 * Names of a directory from position `pos` on; each call of fn gets a name
 * and the position after it; it returns false to stop. Positions of names
 * stay what they are while a directory changes. With `ref` each node for
 * which fn returned true gets a reference. -ESTALE, -ENOTDIR.
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

/*
 * Its number stands for nothing else until it is given back, though the node
 * may be retired. False if there is no such node.
 */
bool manifest_ref(struct manifest *m, node_id id);

/* The kernel forgot a node n times. Retired nodes go with the last one. */
void manifest_unref(struct manifest *m, node_id id, uint64_t n);

/* -- Changing ----------------------------------------------------------- */

/*
 * What the origin says of one name; makes, keeps or replaces its node. now_s
 * is the time of the answer. 0, -ENOMEM, -ESTALE (no such directory),
 * -ENAMETOOLONG for a path over MANIFEST_PATH_MAX,
 * -EINVAL for a name that no directory can hold ("", ".", "..", with '/', over
 * 255 bytes). With `ref` the node gets a reference; info may be NULL, as may
 * fn.
 */
int manifest_put(struct manifest *m, node_id dir,
	const struct file_entry *entry, uint64_t now_s, bool ref,
	struct node_info *info, manifest_event_fn *fn, void *arg);

/*
 * The source has another version of a file: its node gets it, if nobody
 * has read from it and the size is the same. 0; -ESTALE if it cannot.
 */
int manifest_follow(struct manifest *m, node_id dir, const char *name,
	const struct file_attr *attr, manifest_event_fn *fn, void *arg);

/* Somebody was told that the directory lacks a name. */
void manifest_negative(struct manifest *m, node_id dir);

/* The origin vouched for a node at now_s. */
void manifest_checked(struct manifest *m, node_id id, uint64_t now_s);

/* The attributes of the root, which has no name. */
void manifest_put_root(struct manifest *m, const struct file_attr *attr);

/* The name is gone. 0, also if it was not there. */
int manifest_remove(struct manifest *m, node_id dir, const char *name,
	manifest_event_fn *fn, void *arg);

/*
 * A listing: begin, put every name, end. Names that nobody has put since
 * begin are removed by end, and the directory is `listed` from then on.
 */
uint32_t manifest_list_begin(struct manifest *m);
int manifest_list_end(struct manifest *m, node_id dir, uint32_t stamp,
	manifest_event_fn *fn, void *arg);

/* -- Keeping ------------------------------------------------------------ */

/* The file's name in the directory that it is kept in. */
#define MANIFEST_FILE "manifest"

/*
 * Write everything that is known to MANIFEST_FILE in a directory: a new file
 * that takes the old one's place when it is complete. -errno. Format:
 * doc/formats.md.
 */
int manifest_save(struct manifest *m, int dirfd);

/*
 * Fill an empty manifest from a file that manifest_save() wrote, and remove
 * what a save that was killed left. Nobody may be saving there. 0; -ENOENT
 * if there is none; -EBADMSG if it is damaged, of another version or of
 * another dataset: then the manifest may hold a part of it and must be freed;
 * -errno of a read that failed, or -ENOMEM.
 */
int manifest_load(struct manifest *m, int dirfd);

#endif

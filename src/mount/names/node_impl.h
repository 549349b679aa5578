/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the manifest: nodes, the name table and the
 * directories. All fields are guarded by manifest.lock unless their comments
 * say otherwise.
 */
#ifndef NAMES_NODE_IMPL_H
#define NAMES_NODE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/table.h"
#include "mount/names/manifest.h"

#define NODES_PER_SEGMENT 4096u
#define SEGMENTS_MAX (1u << 20)
#define NAMES_BLOCK_BITS 18u
#define NAMES_BLOCK_BYTES ((uint32_t)1 << NAMES_BLOCK_BITS)
#define NAMES_BLOCKS_MAX (1u << (32 - NAMES_BLOCK_BITS))
/* Combinations of owner, group and mode in one dataset. */
#define OWNERS_MAX (1u << 16)

/* The names of a directory that has, or had, more than one. */
struct children {
	uint32_t cap;
	uint32_t holes; /* number of empty slots */
	uint32_t hole;	/* no empty slot is before this one */
	node_id at[];	/* by slot; 0: empty. Slots never move */
};

/* A directory takes 16 bytes, and no other memory if it has a single name,
 * because datasets with one file in each directory are common. */
struct directory {
	union {
		node_id only; /* 0: none */
		struct children *many;
	};
	uint32_t n : 31; /* slots, including empty ones */
	uint32_t has_many : 1;
	/* The number of nodes that have this one as parent, including retired
	 * ones. */
	uint32_t kids : 30;
	uint32_t listed : 1;
	uint32_t negative : 1; /* a caller was told that it lacks some name */
};

#define DIRECTORY_MOST ((UINT32_C(1) << 30) - 1)

struct link {
	uint64_t ino; /* computed from the version that was seen first */
	char target[];
};

enum node_reading {
	NODE_UNREAD,
	NODE_CHANGING, /* is getting another version */
	NODE_READ,     /* its version stays */
};

/*
 * A node has only 72 bytes, because there are millions of nodes. `digest`,
 * `version` and `kind` are set before the node is visible and do not change
 * until it is freed, except in manifest_serve.c. The inode number follows from
 * them: manifest_info().
 */
struct node {
	union {
		struct hash128 digest; /* KIND_FILE: of its path */
		struct directory dir;  /* KIND_DIR */
		struct link *link;     /* KIND_LINK, owned */
	};
	struct file_version version;
	/* References that the kernel holds. A count that has reached NODE_HELD
	 * does not change any more. */
	_Atomic uint32_t refs;
	uint32_t name; /* offset in manifest.names; see manifest_name() */
	node_id parent;
	uint32_t hash;	/* of (parent, name) */
	uint32_t stamp; /* of the last put */
	uint32_t checked_s;
	uint32_t slot;	/* in the parent's directory; or NODE_RETIRED */
	uint16_t owner; /* of manifest.owners */
	uint8_t kind;	/* 0: free */
	_Atomic uint8_t reading; /* enum node_reading */
};

_Static_assert(sizeof(struct node) == 72, "mind the memory for each file");

/* The slot of a node that has no name any more. */
#define NODE_RETIRED UINT32_MAX
#define NODE_HELD UINT32_MAX

static inline bool node_retired(const struct node *n)
{
	return n->slot == NODE_RETIRED;
}

struct owner {
	uint32_t uid, gid, mode;
};

struct manifest {
	pthread_mutex_t save_lock; /* one save at a time; above `lock` */
	pthread_rwlock_t lock;
	struct hash128 dataset; /* set once */
	uint64_t bytes_max;	/* of nodes and names; set once */
	/* Segments are never moved or freed, so nodes can be read unlocked. */
	_Atomic(struct node *) *segment;
	node_id end;	    /* first number never used */
	node_id free_list;  /* linked by parent */
	struct table table; /* of nodes, by (parent, name) */
	uint32_t stamp;
	char **names;	    /* blocks of NAMES_BLOCK_BYTES */
	uint32_t names_end; /* the first offset that is not in use */
	struct owner *owners;
	uint32_t nowners;
	size_t owners_cap;
	struct manifest_totals totals;
	/* The session that numbers are of, set once; 0: none. */
	struct hash128 session;
	struct trail *trail; /* of its changes; NULL: they are not kept */
	uint64_t base_hash;  /* of the header that was loaded; 0: none */
	uint64_t base_trail; /* trail offset at which it was saved */
	bool base_same;	     /* it was saved in this session */
};

static inline struct node *manifest_node(const struct manifest *m, node_id id)
{
	struct node *s = NULL;

	if (id != 0 && id / NODES_PER_SEGMENT < SEGMENTS_MAX)
		s = atomic_load_explicit(&m->segment[id / NODES_PER_SEGMENT],
			memory_order_acquire);
	if (!s || s[id % NODES_PER_SEGMENT].kind == 0)
		return NULL;
	return &s[id % NODES_PER_SEGMENT];
}

/* Like manifest_node(), for a number known to be in use or being created. */
static inline struct node *manifest_node_at(
	const struct manifest *m, node_id id)
{
	return &atomic_load_explicit(&m->segment[id / NODES_PER_SEGMENT],
		memory_order_acquire)[id % NODES_PER_SEGMENT];
}

static inline const char *manifest_name(
	const struct manifest *m, const struct node *n)
{
	return m->names[n->name >> NAMES_BLOCK_BITS] +
		(n->name & (NAMES_BLOCK_BYTES - 1));
}

static inline struct owner *manifest_owner(
	const struct manifest *m, const struct node *n)
{
	return &m->owners[n->owner];
}

/* Take a reference. Any thread, with the lock held. */
void manifest_node_ref(struct node *n);

/* manifest_directory.c: the slots of a directory. */

static inline node_id *directory_at(struct directory *d)
{
	return d->has_many ? d->many->at : &d->only;
}

static inline const node_id *directory_names(const struct directory *d)
{
	return d->has_many ? d->many->at : &d->only;
}

/* Find a slot for a new name; -ENOMEM, -EOVERFLOW. */
int directory_add(struct directory *d, node_id id, uint32_t *slot);
/* Give a name this slot. -EBADMSG: the slot has a name; -ENOMEM, -EOVERFLOW. */
int directory_put(struct directory *d, node_id id, uint32_t slot);
/* Empty a slot whose name is gone. */
void directory_empty(struct directory *d, uint32_t slot);
/*
 * Move a new node from slot `from` to slot `to`, which is empty: a name keeps
 * its slot when its node is replaced, so that a listing in progress does
 * not miss it.
 */
void directory_move(struct directory *d, uint32_t from, uint32_t to);

/* node.c; the caller holds the lock, for writing if the manifest changes. */
node_id manifest_node_new(struct manifest *m);
/*
 * Use this free number for a node, because the previous process did. Returns
 * it, or 0 without memory. Call manifest_nodes_taken() when all such nodes
 * exist, and manifest_node_new() only after that.
 */
node_id manifest_node_take(struct manifest *m, node_id id);
void manifest_nodes_taken(struct manifest *m);
void manifest_node_free(struct manifest *m, node_id id);
/* -ENOMEM, also when there are 4 GiB of names. */
int manifest_name_new(struct manifest *m, const char *name, uint32_t *at);
/* Set mode and owner; -ENOMEM, -EOVERFLOW. */
int manifest_set_attr(
	struct manifest *m, struct node *n, const struct file_attr *attr);
uint32_t manifest_name_hash(node_id parent, const char *name);
node_id manifest_table_find(
	const struct manifest *m, node_id parent, const char *name);
int manifest_table_add(struct manifest *m, node_id id);
int manifest_table_add_all(struct manifest *m, const node_id *ids, uint32_t n);
void manifest_table_del(struct manifest *m, node_id id);
void manifest_info(
	const struct manifest *m, node_id id, struct node_info *info);
int manifest_path_locked(
	const struct manifest *m, node_id id, char *path, size_t size);

/* node_ref.c: free a retired node if it is unused, and then perhaps its
 * parent. manifest_drop() frees a node without checking. The lock is held
 * for writing. */
void manifest_reap(struct manifest *m, node_id id);
void manifest_drop(struct manifest *m, node_id id);

/* manifest_change.c: remove the name of a node; its slot becomes empty. The
 * lock is held for writing. */
void manifest_unname(struct manifest *m, node_id id);

/* The number of a node and its slot in its directory. */
struct node_slot {
	node_id id;
	uint32_t slot;
	bool later; /* the caller adds it to the table, with many others */
};

/*
 * manifest_change.c: manifest_restore() adds a name in its old slot,
 * manifest_restore_retired() a node that has no name any more. Both return 0,
 * -EBADMSG if that is not possible, or -ENOMEM. The lock is held for writing.
 * The caller of manifest_restore() knows that the directory has no such name: a
 * search for each name of a large manifest takes as long as all else, while
 * readers wait.
 */
int manifest_restore(struct manifest *m, node_id dir,
	const struct file_entry *e, const struct node_slot *at);
int manifest_restore_retired(struct manifest *m, node_id dir,
	const struct file_entry *e, node_id id);

/* manifest_change.c: like manifest_put() or, with keep_dir,
 * manifest_put_beside(), with the lock held for writing. */
int manifest_put_locked(struct manifest *m, node_id dir,
	const struct file_entry *e, uint64_t now_s, bool keep_dir, node_id *id,
	manifest_event_fn *fn, void *arg);

#endif

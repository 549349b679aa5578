/* SPDX-License-Identifier: MIT */
/*
 * Nodes, the table of names and the directories, for the files of the manifest.
 * manifest.lock guards all fields whose comment does not say otherwise.
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
/* Limit for the combinations of owner, group and mode in one dataset. */
#define OWNERS_MAX (1u << 16)

/* The slots of a directory that has, or had, more than one name. */
struct children {
	uint32_t cap;
	uint32_t holes; /* number of empty slots */
	uint32_t hole;	/* all slots with smaller numbers are in use */
	node_id at[];	/* node in each slot; 0: empty. Slots never move */
};

/* A directory takes 16 bytes. Datasets with one file in each directory are
 * common, so a directory with a single name needs no other memory. */
struct directory {
	union {
		node_id only; /* the node of a single name; 0: no name */
		struct children *many;
	};
	uint32_t n : 31; /* number of slots, including empty ones */
	uint32_t has_many : 1;
	/* The number of nodes whose parent is this directory, including retired
	 * ones. */
	uint32_t kids : 30;
	uint32_t listed : 1;
	/* The kernel knows that some name is missing */
	uint32_t negative : 1;
};

#define DIRECTORY_MOST ((UINT32_C(1) << 30) - 1)

struct link {
	/* inode number, computed from the first version of the link */
	uint64_t ino;
	char target[];
};

enum node_reading {
	NODE_UNREAD,
	NODE_CHANGING, /* the node is getting another version */
	NODE_READ,     /* the file was read: the node keeps its version */
};

/* A node has only 72 bytes, because there are millions of nodes. `digest`,
 * `version` and `kind` are set before other threads can find the node. After
 * that they do not change until the node is freed, except in manifest_serve.c.
 * manifest_info() computes the inode number from them. */
struct node {
	union {
		struct hash128 digest; /* KIND_FILE: digest of the path */
		struct directory dir;  /* KIND_DIR */
		struct link *link;     /* KIND_LINK, owned */
	};
	struct file_version version;
	/* The number of references that the kernel holds. The value NODE_HELD
	 * does not change any more. */
	_Atomic uint32_t refs;
	uint32_t name; /* offset in manifest.names; see manifest_name() */
	node_id parent;
	uint32_t hash;	/* hash of (parent, name) */
	uint32_t stamp; /* manifest.stamp at the last put */
	uint32_t checked_s;
	uint32_t slot;	/* slot in the parent's directory, or NODE_RETIRED */
	uint16_t owner; /* index in manifest.owners */
	uint8_t kind;	/* enum file_kind; 0: the node is free */
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
	pthread_mutex_t save_lock; /* one save at a time; taken before `lock` */
	pthread_rwlock_t lock;
	struct hash128 dataset; /* set once */
	/* Maximum memory of nodes and names; set once */
	uint64_t bytes_max;
	/* Segments are never moved or freed, so nodes can be read without a
	 * lock. */
	_Atomic(struct node *) *segment;
	node_id end; /* a number larger than all node numbers that were used */
	/* first free node; `parent` of a free node is the next free one */
	node_id free_list;
	struct table table; /* node numbers, by (parent, name) */
	uint32_t stamp;
	char **names;	    /* blocks of NAMES_BLOCK_BYTES */
	uint32_t names_end; /* the first unused offset */
	struct owner *owners;
	uint32_t nowners;
	size_t owners_cap;
	struct manifest_totals totals;
	/* The session to which the node numbers belong, set once; 0: none. */
	struct hash128 session;
	/* Record of changes; NULL: they are not recorded */
	struct trail *trail;
	/* Hash in the header of the loaded file; 0: none */
	uint64_t base_hash;
	uint64_t base_trail; /* trail offset at which that file was saved */
	bool base_same;	     /* that file was saved in this session */
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

/* Like manifest_node(), for a node that is known to be in use or is being
 * created. */
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

/* Take a reference. Any thread may call this with the lock held. */
void manifest_node_ref(struct node *n);

/* manifest_directory.c: slots of a directory, to write and to read. */

static inline node_id *directory_at(struct directory *d)
{
	return d->has_many ? d->many->at : &d->only;
}

static inline const node_id *directory_names(const struct directory *d)
{
	return d->has_many ? d->many->at : &d->only;
}

/* Put a node into a free slot. Returns 0, -ENOMEM or -EOVERFLOW. */
int directory_add(struct directory *d, node_id id, uint32_t *slot);
/* Put a node into this slot. Returns 0, -EBADMSG if the slot is in use, -ENOMEM
 * or -EOVERFLOW. */
int directory_put(struct directory *d, node_id id, uint32_t slot);
/* Empty the slot of a name that was removed. */
void directory_empty(struct directory *d, uint32_t slot);
/* Move a new node from slot `from` to the empty slot `to`. A name keeps its
 * slot when its node is replaced, so that a listing in progress does not miss
 * the name. */
void directory_move(struct directory *d, uint32_t from, uint32_t to);

/* Functions of node.c. The caller holds the lock, for writing if the manifest
 * changes. */
node_id manifest_node_new(struct manifest *m);
/* Use this free number for a node, because the previous process used it.
 * Returns the number; 0: memory is short. After the last such node, call
 * manifest_nodes_taken(), and only then manifest_node_new(). */
node_id manifest_node_take(struct manifest *m, node_id id);
void manifest_nodes_taken(struct manifest *m);
void manifest_node_free(struct manifest *m, node_id id);
/* Store a name. Returns 0, or -ENOMEM, also if there are 4 GiB of names. */
int manifest_name_new(struct manifest *m, const char *name, uint32_t *at);
/* Set mode and owner of a node. Returns 0, -ENOMEM or -EOVERFLOW. */
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

/* Functions of node_ref.c; the lock is held for writing. manifest_reap() frees
 * a retired node that nothing uses, and then its parent if nothing uses the
 * parent either. manifest_drop() frees a node without checking. */
void manifest_reap(struct manifest *m, node_id id);
void manifest_drop(struct manifest *m, node_id id);

/* manifest_change.c: remove the name of a node, and empty its slot. The lock is
 * held for writing. */
void manifest_unname(struct manifest *m, node_id id);

/* The number of a node and its slot in its directory. */
struct node_slot {
	node_id id; /* 0: any free number */
	uint32_t slot;
	bool later; /* the caller adds the node to the table later */
};

/*
 * manifest_change.c: manifest_restore() puts a name into a slot, and
 * manifest_restore_retired() restores a node without a name. Both return 0,
 * -EBADMSG if that is not possible, or -ENOMEM; the first one also returns
 * -E2BIG, as manifest_put(), and sets *id. The lock is held for writing.
 * The caller of manifest_restore() has made sure that the directory does not
 * have the name yet. The function does not look it up: for a large manifest
 * this would double the time for which readers wait.
 */
int manifest_restore(struct manifest *m, node_id dir,
	const struct file_entry *e, const struct node_slot *at, node_id *id);
int manifest_restore_retired(struct manifest *m, node_id dir,
	const struct file_entry *e, node_id id);

#endif

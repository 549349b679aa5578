/* SPDX-License-Identifier: MIT */
/*
 * Inside the manifest: nodes, the name table and the directories. All fields
 * are guarded by manifest.lock unless they say something else.
 */
#ifndef MANIFEST_NODE_IMPL_H
#define MANIFEST_NODE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "manifest/manifest.h"

#define NODES_PER_SEGMENT 4096u
#define SEGMENTS_MAX (1u << 20)
#define NAMES_BLOCK_BYTES ((size_t)1 << 18)

struct directory {
	/* 0: the name went away; positions never move. Points at `only` while
	 * there is room for one. */
	node_id *child;
	node_id only;
	uint32_t n, cap;
	uint32_t holes; /* empty positions, */
	uint32_t hole;	/* none of them before this one */
	uint32_t kids;	/* nodes that have this one as parent, retired too */
	bool listed;
	bool negative; /* somebody was told that it lacks a name */
};

struct link {
	uint64_t ino; /* of the version that was first seen */
	char target[];
};

enum node_reading {
	NODE_UNREAD,
	NODE_CHANGING, /* to another version */
	NODE_READ,     /* its version stays */
};

/*
 * 96 bytes: there are millions. `digest`, `version` and `kind` are set before
 * the node is visible and stay until it is freed, but for what serve.c does.
 * The inode number follows from them: manifest_info().
 */
struct node {
	struct hash128 digest;
	struct file_version version;
	const char *name; /* in manifest.names, or "" for the root */
	union {
		struct directory *dir; /* KIND_DIR */
		struct link *link;     /* KIND_LINK, owned */
	};
	_Atomic uint64_t refs; /* held by the kernel */
	node_id parent;
	uint32_t hash;	/* of (parent, name) */
	uint32_t stamp; /* of the last put */
	uint32_t checked_s;
	uint32_t uid, gid;
	uint32_t slot; /* in the parent's directory; or NODE_RETIRED */
	uint16_t mode;
	uint8_t kind;		 /* 0: free */
	_Atomic uint8_t reading; /* enum node_reading */
};

_Static_assert(sizeof(struct node) == 96, "mind the memory for each file");

/* The slot of a node that has no name any more. */
#define NODE_RETIRED UINT32_MAX

static inline bool node_retired(const struct node *n)
{
	return n->slot == NODE_RETIRED;
}

struct names_block {
	struct names_block *next;
	size_t used;
	char text[];
};

struct manifest {
	pthread_mutex_t save_lock; /* one save at a time; above `lock` */
	pthread_rwlock_t lock;
	struct hash128 dataset; /* set once */
	/* Segments are never moved or freed, so nodes can be read unlocked. */
	_Atomic(struct node *) *segment;
	node_id end;	     /* first number never used */
	node_id free_list;   /* linked by parent */
	node_id *table;	     /* open addressing, by hash; 0 empty */
	uint32_t table_size; /* power of two */
	uint32_t table_used; /* with tombstones */
	uint32_t stamp;
	bool tagged; /* a version has, or had, a tag */
	struct names_block *names;
	struct manifest_totals totals;
};

/* Marks a slot of the table whose node has gone. */
#define NODE_TOMBSTONE ((node_id)UINT32_MAX)

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
static inline struct node *manifest_slot(const struct manifest *m, node_id id)
{
	return &atomic_load_explicit(&m->segment[id / NODES_PER_SEGMENT],
		memory_order_acquire)[id % NODES_PER_SEGMENT];
}

/* node.c; the caller holds the lock for writing. */
node_id manifest_node_new(struct manifest *m);
void manifest_node_free(struct manifest *m, node_id id);
const char *manifest_name_new(struct manifest *m, const char *name);
uint32_t manifest_name_hash(node_id parent, const char *name);
node_id manifest_table_find(
	const struct manifest *m, node_id parent, const char *name);
int manifest_table_add(struct manifest *m, node_id id);
void manifest_table_del(struct manifest *m, node_id id);
void manifest_info(
	const struct manifest *m, node_id id, struct node_info *info);
int manifest_path_locked(
	const struct manifest *m, node_id id, char *path, size_t size);

/* ref.c: free a retired node that is unused, and then perhaps its parent. The
 * lock is held for writing. */
void manifest_reap(struct manifest *m, node_id id);

/* change.c; like manifest_put(), the lock held for writing. With keep_dir like
 * manifest_put_beside(). */
int manifest_put_locked(struct manifest *m, node_id dir,
	const struct file_entry *e, uint64_t now_s, bool keep_dir, node_id *id,
	manifest_event_fn *fn, void *arg);

#endif

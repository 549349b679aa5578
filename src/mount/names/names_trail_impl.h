/* SPDX-License-Identifier: MIT */
/*
 * The format of the trail, and its functions for other files of the manifest.
 */
#ifndef NAMES_TRAIL_IMPL_H
#define NAMES_TRAIL_IMPL_H

#include <limits.h>

#include "mount/names/node_impl.h"

#include "common/base/lock.h"

#define TRAIL_MAGIC "refrtrai"
#define TRAIL_VERSION 1u
#define TRAIL_HEAD_BYTES 4096u
/* Pages of the ring that were never written take no memory. */
#define TRAIL_RING_BYTES ((uint64_t)1 << 30)
#define TRAIL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

/* The beginning of the shared memory, in the byte order of the machine. */
struct trail_head {
	char magic[8];
	uint32_t version, head_bytes;
	uint64_t session_hi, session_lo;
	/* Hash of the saved manifest with which the trail began */
	uint64_t base_hash;
	uint64_t head_hash; /* XXH3-64 of the fields above, seed: version */
	/* The fields below are guarded by manifest.lock. They are atomic,
	 * because another process reads them. */
	/* All changes before this offset are complete */
	_Atomic uint64_t end;
	_Atomic uint64_t told,
		/* `told`: all changes before this offset were acted on. The
		 * other value is a hash of `told` */
		told_hash;
	/* Not 0: some change is neither in the record nor in a saved file */
	_Atomic uint64_t lost;
};

enum trail_kind {
	TRAIL_ADD = 1,
	TRAIL_RETIRE,
	TRAIL_FREE,
	TRAIL_LISTED,
	TRAIL_ATTR,
	TRAIL_FOLLOW,
};

struct trail_record {
	uint64_t hash;	/* XXH3-64 of the following fields, seed: session_lo */
	uint64_t at;	/* offset of the record */
	uint32_t bytes; /* a multiple of 8 */
	uint8_t kind;	/* enum trail_kind */
	uint8_t commit; /* last record of a change */
	uint8_t node_kind;
	uint8_t zero;
	uint16_t mode, name_bytes, target_bytes, zero16;
	uint32_t node, parent, slot, uid, gid, zero32;
	uint64_t size_bytes;
	int64_t mtime_ns;
	uint64_t tag;
	char text[]; /* name and target of the node, for TRAIL_ADD */
};

_Static_assert(sizeof(struct trail_record) == 80, "no holes");

#define TRAIL_RECORD_MAX (sizeof(struct trail_record) + NAME_MAX + PATH_MAX + 8)

/* All fields are guarded by manifest.lock. */
struct trail {
	int fd;
	unsigned char *map;
	struct trail_head *head; /* the beginning of `map` */
	uint64_t seed;
	uint64_t start, next; /* offsets of the records in use: [start, next) */
	uint64_t told;
	/* The record that is being written; NULL: none */
	struct trail_record *open;
	/* When more bytes than this are in use, call full() */
	uint64_t save_bytes;
	void (*full)(void *arg);
	void *full_arg;
	bool lost; /* the ring is full, so nothing is recorded */
};

/* names_trail.c, for manifest_recover.c. trail_alloc() creates a trail, which
 * owns the descriptor (NULL: no memory). trail_map() maps its memory.
 * trail_at() finds the record at an offset. The other functions compute
 * checksums. */
struct trail *trail_alloc(struct hash128 session, int fd);
int trail_map(struct trail *t);
void trail_free(struct trail *t); /* NULL is allowed */
unsigned char *trail_at(const struct trail *t, uint64_t at);
uint64_t trail_hash(const struct trail *t, const void *record);
uint64_t trail_head_hash(const struct trail_head *h);
uint64_t trail_told_hash(const struct trail *t, uint64_t told);

/* Record a change of a node. Call this after the change or, for TRAIL_RETIRE
 * and TRAIL_FREE, before it. Does nothing if changes are not recorded. The lock
 * is held for writing, and the caller must call trail_commit() before it
 * releases the lock. */
void trail_note(struct manifest *m, enum trail_kind kind, node_id id);
void trail_commit(struct manifest *m);

/* If changes were lost because the ring was full, start to record again. The
 * lock is held for writing. The caller saves the manifest afterwards, so that
 * the saved file contains the lost changes. */
void trail_restart(struct manifest *m);

/* Note that the manifest with all changes before offset `at` was saved, in a
 * file of file_bytes. */
void trail_saved(struct manifest *m, uint64_t at, uint64_t file_bytes);

/* Commit the changes to the trail, and release the lock. */
static inline void manifest_unlock_changed(struct manifest *m)
{
	trail_commit(m);
	pthread_rwlock_unlock(&m->lock);
}

#endif

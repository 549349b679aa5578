/* SPDX-License-Identifier: MIT */
/*
 * The format of the trail, and its functions for the manifest's files.
 */
#ifndef NAMES_TRAIL_IMPL_H
#define NAMES_TRAIL_IMPL_H

#include <limits.h>

#include "mount/names/node_impl.h"

#include "common/base/lock.h"

#define TRAIL_MAGIC "refrtrai"
#define TRAIL_VERSION 1u
#define TRAIL_HEAD_BYTES 4096u
/* Only pages that are written take memory. */
#define TRAIL_RING_BYTES ((uint64_t)1 << 30)
#define TRAIL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

/* At the begin of the shared memory; in the byte order of the machine. */
struct trail_head {
	char magic[8];
	uint32_t version, head_bytes;
	uint64_t session_hi, session_lo;
	/* Of the header of the manifest with which it began */
	uint64_t base_hash;
	uint64_t head_hash; /* XXH3-64 of the fields before, seed: version */
	/* Guarded by manifest.lock; atomic, because another process reads
	 * them. */
	/* All changes before this offset are complete */
	_Atomic uint64_t end;
	_Atomic uint64_t told,
		/* The kernel has been told of all changes before `told` */
		told_hash;
	/* a change was neither recorded nor saved since then */
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
	uint64_t hash;	/* XXH3-64 of the rest, seed: session_lo */
	uint64_t at;	/* its offset */
	uint32_t bytes; /* a multiple of 8 */
	uint8_t kind;	/* enum trail_kind */
	uint8_t commit; /* this is the last record of a change */
	uint8_t node_kind;
	uint8_t zero;
	uint16_t mode, name_bytes, target_bytes, zero16;
	uint32_t node, parent, slot, uid, gid, zero32;
	uint64_t size_bytes;
	int64_t mtime_ns;
	uint64_t tag;
	char text[]; /* the name and the target, for TRAIL_ADD */
};

_Static_assert(sizeof(struct trail_record) == 80, "no holes");

#define TRAIL_RECORD_MAX (sizeof(struct trail_record) + NAME_MAX + PATH_MAX + 8)

/* All fields are guarded by manifest.lock. */
struct trail {
	int fd;
	unsigned char *map;
	struct trail_head *head; /* in the map */
	uint64_t seed;
	uint64_t start, next; /* the records in use */
	uint64_t told;
	struct trail_record *open; /* the last one, not complete yet */
	uint64_t save_bytes;	   /* call full() when more are in use */
	void (*full)(void *arg);
	void *full_arg;
	bool lost; /* the ring is full: nothing is recorded */
};

/* names_trail.c, for manifest_recover.c. trail_alloc() makes a trail that takes
 * over the descriptor (NULL: no memory), trail_map() maps its memory,
 * trail_at() finds the record at an offset, and the others compute checksums.
 */
struct trail *trail_alloc(struct hash128 session, int fd);
int trail_map(struct trail *t);
void trail_free(struct trail *t); /* NULL is allowed */
unsigned char *trail_at(const struct trail *t, uint64_t at);
uint64_t trail_hash(const struct trail *t, const void *record);
uint64_t trail_head_hash(const struct trail_head *h);
uint64_t trail_told_hash(const struct trail *t, uint64_t told);

/*
 * Record a change of a node that has been made, or, for TRAIL_RETIRE and
 * TRAIL_FREE, is being made. Does nothing if changes are not recorded. The lock
 * is held for writing, and trail_commit() is called before it is released.
 */
void trail_note(struct manifest *m, enum trail_kind kind, node_id id);
void trail_commit(struct manifest *m);

/* If changes were lost because the ring was full, record again from now on. The
 * lock is held for writing, and the caller saves a copy under it, which
 * contains the lost changes. */
void trail_restart(struct manifest *m);

/* Note that the manifest was saved as it was at offset `at`, in a file of
 * file_bytes. */
void trail_saved(struct manifest *m, uint64_t at, uint64_t file_bytes);

/* Release the lock after changes. */
static inline void manifest_unlock_changed(struct manifest *m)
{
	trail_commit(m);
	pthread_rwlock_unlock(&m->lock);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The index: which entries there are, in memory, so that a look-up costs no
 * system call and every entry is charged once. One slot an entry:
 *
 *   absent --claim--> LINKING --publish--> RESIDENT --drop--> DROPPING
 *   absent --adopt--> RESIDENT            DROPPING --restore--> RESIDENT
 *   LINKING, DROPPING --forget--> absent (GONE while directories are read)
 *
 * Who takes a slot to LINKING or DROPPING owns it and the entry's name on disk
 * until the next step: so nobody links over a deletion or the other way round,
 * and no lock is held over I/O. GONE keeps the reader of the directories, which
 * may hold a name that was deleted since, from adopting it again.
 *
 * Any thread may call; sharded locks, taken inside.
 */
#ifndef STORE_INDEX_IMPL_H
#define STORE_INDEX_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

enum index_state {
	INDEX_ABSENT,
	INDEX_LINKING,
	INDEX_RESIDENT,
	INDEX_DROPPING,
	INDEX_GONE,
};

struct index_ref {
	struct hash128 key;
	uint64_t item_bytes;
	size_t tier;
};

struct index;

/* NULL for want of memory. */
struct index *index_new(void);
void index_free(struct index *x);

/* State of a key; *ref is filled in unless it is absent. */
enum index_state index_find(
	struct index *x, struct hash128 key, struct index_ref *ref);

/*
 * absent -> RESIDENT: 1, after charge(arg, ref) was called with the shard's
 * lock held. 0 if there is a slot: *now tells of it; or if the directories
 * have been read, so that it has been deleted. -ENOMEM.
 */
typedef void index_charge_fn(void *arg, const struct index_ref *ref);
int index_adopt(struct index *x, const struct index_ref *ref,
	index_charge_fn *charge, void *arg, struct index_ref *now);

/* absent -> LINKING: 1. 0 if there is a slot. -ENOMEM. */
int index_claim(struct index *x, const struct index_ref *ref);

/* LINKING: it is to be in another tier. */
void index_move(struct index *x, struct hash128 key, size_t tier);

/*
 * LINKING -> RESIDENT: true. False if the entry was to be dropped meanwhile:
 * it is DROPPING now.
 */
bool index_publish(struct index *x, struct hash128 key);

/*
 * RESIDENT -> DROPPING: true, and *ref. False if there is no such entry; one
 * that is LINKING becomes DROPPING when it is complete.
 */
bool index_drop(struct index *x, struct hash128 key, struct index_ref *ref);

/* DROPPING -> RESIDENT: it could not be deleted, or is another file now. */
void index_restore(struct index *x, struct hash128 key);

/* LINKING or DROPPING -> absent. */
void index_forget(struct index *x, struct hash128 key);

/* The directories have been read: no more GONE, nor anything to adopt. */
void index_scanned(struct index *x);

/*
 * Marks. unkeep_all() takes the mark off every entry, keep() sets it, and so
 * does publication. drop_unkept() takes up to `max` RESIDENT ones without it to
 * DROPPING; 0: there are none left.
 */
void index_unkeep_all(struct index *x);
void index_keep(struct index *x, struct hash128 key);
size_t index_drop_unkept(struct index *x, struct index_ref *refs, size_t max);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The set of entries in memory, so that a look-up costs no system
 * call and every entry is charged once. Each entry has one slot:
 *
 *   absent --claim--> LINKING --publish--> RESIDENT --drop--> DROPPING
 *   absent --adopt--> RESIDENT            DROPPING --restore--> RESIDENT
 *   LINKING, DROPPING --forget--> absent (GONE while directories are read)
 *
 * The thread that takes a slot to LINKING or DROPPING owns it and the entry's
 * name on disk until the next step. So nobody links over a deletion or deletes
 * over a link, and no lock is held over I/O. The reader of the directories may
 * hold a name that has been deleted since; GONE keeps it from adopting that.
 *
 * Any thread may call; sharded locks, taken inside.
 */
#ifndef STORE_ENTRY_TABLE_IMPL_H
#define STORE_ENTRY_TABLE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

enum entry_state {
	ENTRY_ABSENT,
	ENTRY_LINKING,
	ENTRY_RESIDENT,
	ENTRY_DROPPING,
	ENTRY_GONE,
};

struct entry_ref {
	struct hash128 key;
	uint64_t item_bytes;
	size_t tier;
};

struct entries;

/* NULL for want of memory. */
struct entries *entries_new(void);
void entries_free(struct entries *x);

/* The state of a key; *ref is filled in unless it is absent. */
enum entry_state entries_find(
	struct entries *x, struct hash128 key, struct entry_ref *ref);

/*
 * absent -> RESIDENT: returns 1, after charge(arg, ref) was called with the
 * shard's lock held. Returns 0 if there is a slot, with its state in *now, or
 * if the directories have been read, as the entry has then been deleted. Or
 * -ENOMEM.
 */
typedef void entries_charge_fn(void *arg, const struct entry_ref *ref);
int entries_adopt(struct entries *x, const struct entry_ref *ref,
	entries_charge_fn *charge, void *arg, struct entry_ref *now);

/* absent -> LINKING: returns 1, 0 if there is a slot, or -ENOMEM. */
int entries_claim(struct entries *x, const struct entry_ref *ref);

/* LINKING: the entry goes to another tier. */
void entries_move(struct entries *x, struct hash128 key, size_t tier);

/*
 * LINKING -> RESIDENT: returns true. Returns false if the entry should be
 * dropped by now: it is then DROPPING.
 */
bool entries_publish(struct entries *x, struct hash128 key);

/*
 * RESIDENT -> DROPPING: returns true, and *ref. Returns false if there is no
 * such entry; one that is LINKING becomes DROPPING when it is complete.
 */
bool entries_drop(struct entries *x, struct hash128 key, struct entry_ref *ref);

/* DROPPING -> RESIDENT, for an entry that could not be deleted or is another
 * file now. */
void entries_restore(struct entries *x, struct hash128 key);

/* LINKING or DROPPING -> absent. */
void entries_forget(struct entries *x, struct hash128 key);

/* The directories have been read: GONE slots are removed, and no entry is
 * adopted any more. */
void entries_scanned(struct entries *x);

/*
 * Marks. unkeep_all() clears the mark of every entry; keep(), keep_sizes() for
 * all entries of two sizes, and publication set it. drop_unkept() takes up to
 * `max` unmarked RESIDENT entries to DROPPING and returns their number; 0:
 * there are none left.
 */
void entries_unkeep_all(struct entries *x);
void entries_keep(struct entries *x, struct hash128 key);
void entries_keep_sizes(struct entries *x, uint64_t one, uint64_t other);
size_t entries_drop_unkept(
	struct entries *x, struct entry_ref *refs, size_t max);

#endif

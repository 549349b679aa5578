/* SPDX-License-Identifier: MIT */
/*
 * The set of entries in memory, so that a look-up costs no system call and
 * every entry is charged once. Each entry has one cell:
 *
 *   absent --claim--> LINKING --publish--> RESIDENT --drop--> DROPPING
 *   absent --adopt--> RESIDENT            DROPPING --restore--> RESIDENT
 *   LINKING, DROPPING --forget--> absent (GONE while directories are read)
 *
 * The thread that takes a cell to LINKING or DROPPING owns it and the entry's
 * name on disk until the next step. So an entry is never linked and deleted at
 * the same time, and no lock is held during I/O. The thread that reads the
 * directories may have read a name that has been deleted since; GONE prevents
 * it from adopting that.
 *
 * Any thread may call; each shard has a lock, which the functions take.
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

/* Returns NULL if memory is short. */
struct entries *entries_new(void);
void entries_free(struct entries *x);

/* Find the state of a key. Fills in *ref unless the key is absent. */
enum entry_state entries_find(
	struct entries *x, struct hash128 key, struct entry_ref *ref);

/*
 * absent -> RESIDENT. Returns 1 after it has called charge(arg, ref) with the
 * shard's lock held. Returns 0 and sets *now if the key has a cell. Also
 * returns 0 if all directories have been read: an entry without a cell has been
 * deleted since the caller found it. Otherwise returns -ENOMEM.
 */
typedef void entries_charge_fn(void *arg, const struct entry_ref *ref);
int entries_adopt(struct entries *x, const struct entry_ref *ref,
	entries_charge_fn *charge, void *arg, struct entry_ref *now);

/* absent -> LINKING. Returns 1, 0 if the key has a cell already, or -ENOMEM. */
int entries_claim(struct entries *x, const struct entry_ref *ref);

/* Change the tier in which a LINKING entry is going to be. */
void entries_move(struct entries *x, struct hash128 key, size_t tier);

/* LINKING -> RESIDENT. Returns true. If entries_drop() was called in the
 * meantime, the entry becomes DROPPING instead, and this returns false. */
bool entries_publish(struct entries *x, struct hash128 key);

/* RESIDENT -> DROPPING. Returns true and sets *ref. Otherwise returns false; an
 * entry that is LINKING then becomes DROPPING as soon as it is published. */
bool entries_drop(struct entries *x, struct hash128 key, struct entry_ref *ref);

/* DROPPING -> RESIDENT. Used for an entry that could not be deleted, or whose
 * name belongs to another file now. */
void entries_restore(struct entries *x, struct hash128 key);

/* LINKING or DROPPING -> absent. */
void entries_forget(struct entries *x, struct hash128 key);

/* Note that all directories have been read. Removes the GONE cells. From now on
 * entries_adopt() adopts nothing. */
void entries_scanned(struct entries *x);

/*
 * Each entry has a mark. unmark_all() clears all marks. mark() sets the mark of
 * one entry, and mark_sizes() the marks of all entries that have one of two
 * sizes. Publication sets the mark of the new entry. drop_unmarked() moves up
 * to `max` RESIDENT entries without a mark to DROPPING. It returns their
 * number, which is 0 if none is left.
 */
void entries_unmark_all(struct entries *x);
void entries_mark(struct entries *x, struct hash128 key);
void entries_mark_sizes(struct entries *x, uint64_t one, uint64_t other);
size_t entries_drop_unmarked(
	struct entries *x, struct entry_ref *refs, size_t max);

#endif

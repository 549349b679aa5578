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

/* Returns NULL if there is no memory. */
struct entries *entries_new(void);
void entries_free(struct entries *x);

/* The state of a key; *ref is filled in unless it is absent. */
enum entry_state entries_find(
	struct entries *x, struct hash128 key, struct entry_ref *ref);

/*
 * absent -> RESIDENT: returns 1, after charge(arg, ref) was called with the
 * shard's lock held. Returns 0 if there is a cell, with its state in *now, or
 * if all directories have been read, because the entry has been deleted then.
 * Otherwise returns -ENOMEM.
 */
typedef void entries_charge_fn(void *arg, const struct entry_ref *ref);
int entries_adopt(struct entries *x, const struct entry_ref *ref,
	entries_charge_fn *charge, void *arg, struct entry_ref *now);

/* absent -> LINKING: returns 1, 0 if there is a cell already, or -ENOMEM. */
int entries_claim(struct entries *x, const struct entry_ref *ref);

/* The entry is LINKING: it will be in another tier. */
void entries_move(struct entries *x, struct hash128 key, size_t tier);

/* LINKING -> RESIDENT: returns true. Returns false if the entry is to be
 * dropped by now: then it is DROPPING. */
bool entries_publish(struct entries *x, struct hash128 key);

/* RESIDENT -> DROPPING: returns true and sets *ref. Otherwise returns false; if
 * the entry is LINKING, it becomes DROPPING when it is complete. */
bool entries_drop(struct entries *x, struct hash128 key, struct entry_ref *ref);

/* DROPPING -> RESIDENT, for an entry that could not be deleted or is another
 * file now. */
void entries_restore(struct entries *x, struct hash128 key);

/* LINKING or DROPPING -> absent. */
void entries_forget(struct entries *x, struct hash128 key);

/* All directories have been read: GONE cells are removed, and no entry is
 * adopted any more. */
void entries_scanned(struct entries *x);

/*
 * Each entry has a mark. unmark_all() clears all marks. mark() sets that of one
 * entry, mark_sizes() those of all entries with one of two sizes, and
 * publication that of a new one. drop_unmarked() moves up to `max` unmarked
 * RESIDENT entries to DROPPING, and returns their number, which is 0 if none is
 * left.
 */
void entries_unmark_all(struct entries *x);
void entries_mark(struct entries *x, struct hash128 key);
void entries_mark_sizes(struct entries *x, uint64_t one, uint64_t other);
size_t entries_drop_unmarked(
	struct entries *x, struct entry_ref *refs, size_t max);

#endif

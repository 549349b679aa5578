/* SPDX-License-Identifier: MIT */
/*
 * The store: tiers, which are directories with budgets, and the entries in
 * them. An entry is a file with the bytes of one item and a trailer of
 * checksums; common/format/entry.h has the format. No entry is ever evicted: an
 * item is admitted only if the budget has room.
 *
 * All functions may be called from any thread.
 */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/hash.h"
#include "common/format/entry.h"

struct store;

#define STORE_TIERS_MAX 16

/* Maximum length of one store_read(). */
#define STORE_READ_MAX_BYTES ((size_t)1 << 20)

struct tier_config {
	const char *dir;  /* created if it is missing (its parent must exist) */
	const char *size; /* SIZE or N% of the file system, as on the command
			     line */
};

struct store_config {
	const char *dataset; /* the source, as recorded in each tier */
	struct tier_config tiers[STORE_TIERS_MAX]; /* fastest first */
	size_t ntiers;
	bool verify;	   /* false: do not verify blocks on reads */
	const char *group; /* group that may read the tiers, or NULL */
	/* Have the kernel write entries to disk as soon as they are complete:
	 * the processes of a memory control group that is full of dirty pages
	 * are killed. */
	bool write_out;
	const struct event_sink *events; /* may be NULL */
};

/*
 * Open and lock every tier; create what is missing. The store can be used at
 * once: entries of an earlier mount are found on demand, and admission waits
 * until a background thread has read the tiers' directories. `counters`
 * outlives the store. Every error is one line that says what to do. A directory
 * may be of the wrong type, unwritable, not empty, of another dataset
 * (-EEXIST), in use by another daemon (-EBUSY) or given twice; a size may be
 * invalid, zero or larger than the file system (-EFBIG).
 */
int store_open(struct store **out, const struct store_config *config,
	struct counters *counters, struct error *err);

/* The descriptor of a tier's directory, which belongs to the store. */
int store_tier_fd(const struct store *s, size_t tier);

/* Stop the background thread and unlock. No call may be in progress. */
void store_close(struct store *s);

/* Wait until the directories have been read and admission is open. */
void store_wait_ready(struct store *s);

/* Is there an entry? Looks only in memory; before the store is ready, perhaps
 * also on disk. */
bool store_has(struct store *s, struct hash128 key, uint64_t item_bytes);

/* A buffer for a thread that reads; each has its own. NULL: no memory. */
struct store_scratch *store_scratch_new(void);
void store_scratch_free(struct store_scratch *scratch);

/*
 * Read bytes [off, off + len) of an item of item_bytes, and verify them. On
 * success returns len, and *data points into the scratch until its next use.
 * Returns -ENOENT if there is no entry. A lost or damaged entry is first
 * dropped, uncharged and counted; then the caller must fetch the item again.
 */
ssize_t store_read(struct store *s, struct store_scratch *scratch,
	struct hash128 key, uint64_t item_bytes, uint64_t off, size_t len,
	const void **data);

/*
 * Room for one item, reserved before its first byte is fetched. Exactly one
 * of store_publish() and store_unreserve() ends it.
 */
struct reservation {
	size_t tier;		/* index */
	uint64_t charged_bytes; /* 0: none held */
};

/*
 * Reserve in the first tier with room. A tier whose last write failed is tried
 * last, but now and then also before. Returns 0, -ENOSPC if no tier has room or
 * the item is larger than ENTRY_ITEM_MAX_BYTES, or -EAGAIN if admission is not
 * open yet.
 */
int store_reserve(struct store *s, uint64_t item_bytes, struct reservation *r);
void store_unreserve(struct store *s, struct reservation *r);

/*
 * Write an entry and link it; blocks. If the tier fails, that is counted, and
 * the next tier with room gets the entry. Ends the reservation in any case.
 * Returns 0 if the item is in a tier now; -EEXIST if there is an entry already
 * or one is being deleted, and nothing was written; another -errno if no tier
 * took it.
 */
int store_publish(struct store *s, struct reservation *r, struct hash128 key,
	const void *data, uint64_t item_bytes);

/* Delete an entry, if there is one. */
void store_discard(struct store *s, struct hash128 key, uint64_t item_bytes);

/*
 * Delete an entry if its tier then has room for an item of item_bytes, and
 * reserve for that item. Returns false if the entry stays. Returns true without
 * a reservation if another thread took the room first.
 */
bool store_exchange(struct store *s, struct hash128 key, uint64_t old_bytes,
	uint64_t item_bytes, struct reservation *r);

/* The version no longer exists: delete its entry, if any, and count it as
 * invalidated. */
void store_invalidate(struct store *s, struct hash128 key, uint64_t item_bytes);

/*
 * Collect entries of versions that disappeared while nothing was mounted.
 * store_unmark_all() waits until the store is ready, then clears all marks;
 * store_mark() marks an entry that exists; store_sweep() deletes the rest,
 * counts them as invalidated, and returns their number. Entries published in
 * between are kept.
 */
void store_unmark_all(struct store *s);
void store_mark(struct store *s, struct hash128 key);
/* Mark all entries of items of this size, and all parts of such items. */
void store_mark_size(struct store *s, uint64_t item_bytes);
uint64_t store_sweep(struct store *s);

/*
 * A part is an entry that has only some pages of an item, because the others
 * were not fetched, and a bitmap that says which. `key` and `item_bytes` are
 * those of the item.
 */
#define STORE_PAGE_BYTES ((size_t)4096)

/* The size of the bitmap; 0: an item of this size cannot have a part. */
size_t store_part_map_bytes(uint64_t item_bytes);

static inline bool store_part_map_has(const uint8_t *map, size_t page)
{
	return map[page / 8] >> (page % 8) & 1;
}

static inline void store_part_map_set(uint8_t *map, size_t page)
{
	map[page / 8] |= (uint8_t)(1u << (page % 8));
}

bool store_part_has(struct store *s, struct hash128 key, uint64_t item_bytes);
/* Returns false, and writes nothing, if there is no part that can be read. */
bool store_part_read(struct store *s, struct hash128 key, uint64_t item_bytes,
	void *data, uint8_t *map);
/*
 * Write a part, and replace an earlier one; blocks. `data` has room for the
 * bitmap after the bytes of the item; pages that are not in the map become
 * zeros. Ends the reservation, which was for the whole item.
 */
int store_part_write(struct store *s, struct reservation *r, struct hash128 key,
	void *data, uint64_t item_bytes, const uint8_t *map);
/* Like store_exchange(): the room of the part becomes that of the item. */
bool store_part_exchange(struct store *s, struct hash128 key,
	uint64_t item_bytes, struct reservation *r);
void store_part_discard(
	struct store *s, struct hash128 key, uint64_t item_bytes);
/* Mark a part, unless its whole item is there. */
void store_part_mark(struct store *s, struct hash128 key, uint64_t item_bytes);

struct tier_status {
	const char *dir; /* the store's; valid until store_close() */
	uint64_t capacity_bytes;
	uint64_t used_bytes;	 /* charged, reservations not included */
	uint64_t reserved_bytes; /* charged + reserved <= capacity, always */
	uint64_t resident_bytes; /* content bytes of the entries */
	uint64_t entries;
	uint64_t errors; /* writes, reads and deletions that failed */
	bool in_memory;	 /* a file system in memory */
	bool gone;	 /* its path does not lead to it any more */
};

size_t store_tiers(const struct store *s);
void store_tier_status(
	struct store *s, size_t tier, struct tier_status *status);
bool store_ready(struct store *s);
/* Change the capacity of a tier at once. Returns -ENOSPC if what it has, or is
 * about to get, would not fit. */
int store_resize(struct store *s, size_t tier, uint64_t capacity_bytes);

/*
 * Check one tier directory, mounted or not: re-hash every entry and call
 * bad(path, why) for each damaged one. Takes no lock. Returns the number of bad
 * entries or -errno; *checked gets the number of entries checked.
 */
typedef void store_bad_fn(void *arg, const char *path, const char *why);
typedef void store_progress_fn(void *arg, uint64_t done, uint64_t bytes);
int64_t store_verify_dir(const char *dir, store_bad_fn *bad,
	store_progress_fn *progress, void *arg, uint64_t *checked,
	struct error *err);

/* Is this directory a tier? Also true if it is damaged, of another version, or
 * without its identity file. */
bool store_is_tier(int dir_fd);

/*
 * Delete every entry of a tier directory that no mount uses, its manifests
 * ("manifest*"), and the files that make it a tier. The directory itself stays.
 * Returns -EBUSY if a daemon holds it, -EINVAL if it is not a tier. A directory
 * without an identity file counts as a tier if it contains only files of a
 * tier. *removed gets the number of entries.
 */
int store_clear_dir(const char *dir, uint64_t *removed, struct error *err);

/*
 * Count and report an operation on a tier that failed with `status`. `path` is
 * the entry's, or NULL.
 */
void store_failed(struct store *s, size_t tier, enum event_kind kind,
	const char *path, int status);

#endif

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
	const char *dir; /* created if it is missing; its parent must exist */
	/* SIZE or N% of the file system, as in --cache; NULL only with a root:
	 * the size that the root has already, or 90 % of its file system */
	const char *size;
	/* The cache root that `dir` is in, and whose size is `size`; NULL:
	 * none */
	const char *root;
	/* Space of the file system that the tier leaves free; or NULL */
	const char *keep_free;
};

struct store_config {
	const char *dataset; /* the source, as recorded in each tier */
	struct tier_config tiers[STORE_TIERS_MAX]; /* fastest first */
	size_t ntiers;
	bool verify;	   /* verify blocks on reads */
	const char *group; /* the group that may read the tiers, or NULL */
	/* Have the kernel start to write each complete entry to disk at once.
	 * Otherwise dirty pages could fill the memory control group, and the
	 * kernel would kill processes in it. */
	bool write_out;
	const struct event_sink *events; /* may be NULL */
};

/*
 * Open and lock every tier, and create what is missing. The store can be used
 * at once: it finds entries of an earlier mount on demand. Nothing is admitted
 * until a background thread has read the tiers' directories. `counters`
 * outlives the store.
 *
 * Every error is one line that says what to do. A directory may be of the wrong
 * type, unwritable, not empty, of another dataset (-EEXIST), in use by another
 * daemon (-EBUSY) or given twice. A size may be invalid, zero or larger than
 * the file system (-EFBIG).
 */
int store_open(struct store **out, const struct store_config *config,
	struct counters *counters, struct error *err);

/* Returns the descriptor of a tier's directory, which the store owns. */
int store_tier_fd(const struct store *s, size_t tier);

/* Stop the background thread and unlock the tiers. No call may be in
 * progress. */
void store_close(struct store *s);

/* Wait until all directories of the tiers have been read and admission is
 * open. */
void store_wait_ready(struct store *s);

/* Does an entry exist? This looks in memory. Until all directories have been
 * read, it also looks on disk for an entry that it does not find in memory. */
bool store_has(struct store *s, struct hash128 key, uint64_t item_bytes);

/* Create a buffer for store_read(). Each thread that reads has its own. Returns
 * NULL if memory is short. */
struct store_scratch *store_scratch_new(void);
void store_scratch_free(struct store_scratch *scratch);

/*
 * Read bytes [off, off + len) of an item of item_bytes, and verify them. On
 * success returns len, and *data points into the scratch until its next use.
 * Returns -ENOENT if there is no entry, or if the entry was lost or damaged;
 * then it has been dropped, uncharged and counted. After -ENOENT the caller
 * must fetch the item.
 */
ssize_t store_read(struct store *s, struct store_scratch *scratch,
	struct hash128 key, uint64_t item_bytes, uint64_t off, size_t len,
	const void **data);

/* Space in a tier for one item, reserved before the first byte of the item is
 * fetched. End it with exactly one call of store_publish() or
 * store_unreserve(). */
struct reservation {
	size_t tier;		/* index of the tier */
	uint64_t charged_bytes; /* 0: nothing is reserved */
};

/* Reserve space in the first tier that has enough. A tier whose last write
 * failed is tried after all others, except once a second. Returns 0; -ENOSPC if
 * no tier has enough space or the item is larger than ENTRY_ITEM_MAX_BYTES; or
 * -EAGAIN if admission is not open yet. */
int store_reserve(struct store *s, uint64_t item_bytes, struct reservation *r);
/* Has no tier enough space for an item now, although one will soon have it or
 * be known not to get it? The grant of a tier in a cache root grows by and by.
 */
bool store_room_comes(struct store *s, uint64_t item_bytes);
void store_unreserve(struct store *s, struct reservation *r);

/*
 * Write an entry and link it. This blocks, and ends the reservation in any
 * case. If the tier fails, the failure is counted and the next tier with enough
 * space gets the entry. Returns 0 if the item is in a tier now; -EEXIST, with
 * nothing written, if an entry exists already or is being deleted; or another
 * -errno if no tier could take the item.
 */
int store_publish(struct store *s, struct reservation *r, struct hash128 key,
	const void *data, uint64_t item_bytes);

/* Delete an entry if it exists. Returns true if it was deleted. A failure is
 * counted. */
bool store_discard(struct store *s, struct hash128 key, uint64_t item_bytes);

/* Delete an entry, and reserve its space for an item of item_bytes, if the tier
 * then has enough space for the item. Returns false if the entry was not
 * deleted. Returns true without a reservation if another thread has taken the
 * space first. */
bool store_exchange(struct store *s, struct hash128 key, uint64_t old_bytes,
	uint64_t item_bytes, struct reservation *r);

/* Delete the entry of a version that no longer exists, if there is one, and
 * count it as invalidated. */
void store_invalidate(struct store *s, struct hash128 key, uint64_t item_bytes);

/*
 * Delete entries of versions that disappeared while nothing was mounted.
 * store_unmark_all() waits until the store is ready, then clears all marks.
 * store_mark() marks an existing entry. store_sweep() deletes the entries
 * without a mark, counts them as invalidated, and returns their number. An
 * entry that is published between these calls has a mark.
 */
void store_unmark_all(struct store *s);
void store_mark(struct store *s, struct hash128 key);
/* Mark all entries of items of this size, and all parts of items of this
 * size. */
void store_mark_size(struct store *s, uint64_t item_bytes);
uint64_t store_sweep(struct store *s);

/* A part is an entry with only some pages of an item and a bitmap of these
 * pages; the other pages were not fetched. `key` and `item_bytes` are those of
 * the item. */
#define STORE_PAGE_BYTES ((size_t)4096)

/* Returns the size of the bitmap; 0: an item of this size cannot have a
 * part. */
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
/* Returns false, with nothing written to `data` and `map`, if the item has no
 * readable part. */
bool store_part_read(struct store *s, struct hash128 key, uint64_t item_bytes,
	void *data, uint8_t *map);
/*
 * Write a part in place of an earlier one. This blocks, and ends the
 * reservation, which was for the whole item. `data` needs space for the bitmap
 * after the bytes of the item. Pages that are not in the map are overwritten
 * with zeros.
 */
int store_part_write(struct store *s, struct reservation *r, struct hash128 key,
	void *data, uint64_t item_bytes, const uint8_t *map);
/* Like store_exchange(): replace the part by a reservation for its item. */
bool store_part_exchange(struct store *s, struct hash128 key,
	uint64_t item_bytes, struct reservation *r);
void store_part_discard(
	struct store *s, struct hash128 key, uint64_t item_bytes);
/* Mark a part. If an entry has the whole item, the part stays unmarked. */
void store_part_mark(struct store *s, struct hash128 key, uint64_t item_bytes);

struct tier_status {
	const char *dir; /* owned by the store; valid until store_close() */
	uint64_t capacity_bytes;
	uint64_t used_bytes;	 /* charged for entries, without reservations */
	uint64_t reserved_bytes; /* used + reserved <= capacity, always */
	/* content bytes of the entries, without trailers */
	uint64_t resident_bytes;
	uint64_t entries;
	uint64_t errors;      /* writes, reads and deletions that failed */
	uint64_t block_bytes; /* an entry takes a multiple of this */
	bool in_memory;	      /* on a file system in memory, such as tmpfs */
	/* The path of the tier leads to another directory now, or to none */
	bool gone;
};

size_t store_tiers(const struct store *s);
/* Is the tier on a file system in memory, so that writes to it do not wait? */
bool store_in_memory(const struct store *s, size_t tier);
void store_tier_status(
	struct store *s, size_t tier, struct tier_status *status);
bool store_ready(struct store *s);
/* Change the capacity of a tier at once. Returns -ENOSPC if its entries and
 * reservations would not fit. */
int store_resize(struct store *s, size_t tier, uint64_t capacity_bytes);

/* Check one tier directory, mounted or not: hash every entry again, and call
 * bad(path, why) for each damaged one. Takes no lock. Returns the number of
 * damaged entries or -errno. *checked gets the number of entries checked. */
typedef void store_bad_fn(void *arg, const char *path, const char *why);
typedef void store_progress_fn(void *arg, uint64_t done, uint64_t bytes);
int64_t store_verify_dir(const char *dir, store_bad_fn *bad,
	store_progress_fn *progress, void *arg, uint64_t *checked,
	struct error *err);

/* Is this directory a tier? A damaged tier, a tier of another version, and a
 * tier that has lost its identity file also count. */
bool store_is_tier(int dir_fd);

/*
 * Delete every entry of a tier directory that no mount uses, its manifests
 * ("manifest*"), and the files that make it a tier. The directory itself stays.
 * A directory without an identity file counts as a tier if it contains only
 * files of a tier. Returns -EBUSY if a daemon has locked the directory, or
 * -EINVAL if it is not a tier. *removed gets the number of deleted entries.
 */
int store_clear_dir(const char *dir, uint64_t *removed, struct error *err);

/* Count and report an operation on a tier that failed with `status`. `path` is
 * the path of the entry, or NULL. */
void store_failed(struct store *s, size_t tier, enum event_kind kind,
	const char *path, int status);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * One tier: the open directory, its lock and its budget. One thread opens and
 * closes the tier; any thread may call the other functions.
 */
#ifndef STORE_TIER_IMPL_H
#define STORE_TIER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "mount/store/store.h"

#define TIER_SUBDIRS 256
/* The inodes of an empty tier in a cache root: its directories and files. */
#define TIER_INODES (TIER_SUBDIRS + 8u)

struct tier {
	/* Set once, by tier_open(). */
	char *dir;
	int fd;
	int lock_fd;
	dev_t dev;
	ino_t ino;
	uint64_t block_bytes;
	uid_t uid;	/* the owner of the directory */
	bool in_memory; /* its file system is in memory */
	gid_t group;	/* (gid_t)-1: none */
	/* if another tier fails, delete what was created */
	bool made_dir, made_lock, made_grant;
	/* The identity file is missing, but all files found are those of a tier
	 */
	bool lost_identity;

	/* Relaxed: cleared by any thread that finds that unnamed files do not
	 * work. */
	_Atomic bool tmpfile;

	/* Set once, by tier_open(). */
	int root_fd; /* descriptor of the cache root; -1: there is none */
	/* space of the file system that must stay free */
	uint64_t keep_bytes, keep_inodes;
	/* The thread that watches the tier */
	uint64_t grant_ns, touch_ns, look_ns; /* times of the next attempts */
	uint64_t grants_seen; /* the file of the grants, if the tier has one */
	/* Size of the root, as in struct grants */
	uint64_t root_bytes, root_inodes;

	/* Guards all members below. It is taken after the lock of a shard of
	 * entries; no other lock is taken with it. */
	pthread_mutex_t lock;
	/* Set without the lock before the first admission */
	uint64_t capacity_bytes;
	uint64_t charged_bytes; /* space charged for entries */
	/* Space reserved for items that are being fetched */
	uint64_t reserved_bytes;
	uint64_t resident_bytes; /* content bytes of the entries */
	uint64_t entries;	 /* number of entries */
	uint64_t errors;	 /* operations that failed */
	bool full;		 /* reported as full */
	uint64_t capacity_entries, reserved_items;
	/* Free space at the last check, without the space that must stay free
	 * and without reservations since then; UINT64_MAX: no limit */
	uint64_t room_bytes, room_inodes;
	uint64_t step_bytes, step_inodes; /* steps by which the grant grows */
	bool grant_last;		  /* the grant cannot grow now */
	/* The grant that the tier would have with all space that the root had
	 * left at the last request */
	uint64_t grant_max_bytes;
	uint64_t refused_bytes; /* largest charge that the grant had no room for
				 */
	/* Some entries may not be charged, so nothing is admitted */
	bool closed;
	/* The time of the next attempt after a failed write; 0: the last write
	 * succeeded. */
	uint64_t retry_ns;
};

/* Open, check and lock the directory, and create it if it is missing. Changes
 * no other file in it. On failure, deletes and closes what it has created. */
int tier_open(struct tier *t, const struct tier_config *config,
	const char *dataset, gid_t group, struct error *err);

/* Make the directory a tier of the dataset: create the identity file and the
 * sub-directories. */
int tier_make(struct tier *t, const char *dataset, struct error *err);

/* Unlock and close the tier. With `undo`, also delete what tier_open()
 * created. */
void tier_close(struct tier *t, bool undo);

/* Create one sub-directory with the mode and group of the tier. Returns 0 also
 * if it exists. */
int tier_make_subdir(const struct tier *t, const char *name);

/* Returns the space charged for an entry of item_bytes content bytes. */
uint64_t tier_charge_of(const struct tier *t, uint64_t item_bytes);

/* Would an item fit now? */
bool tier_fits(struct tier *t, uint64_t charge_bytes);
/* May the tier get a grant soon that is large enough for the item? */
bool tier_grows(struct tier *t, uint64_t charge_bytes);

int tier_resize(struct tier *t, uint64_t capacity_bytes);

bool tier_reserve(struct tier *t, uint64_t charge_bytes);

/* Like tier_reserve(), but allows only one reservation a second if the last
 * write to the tier failed. */
bool tier_reserve_well(struct tier *t, uint64_t charge_bytes);
void tier_unreserve(struct tier *t, uint64_t charge_bytes);

/* Would an item of item_bytes fit if an entry of old_bytes were deleted? */
bool tier_may_exchange(struct tier *t, uint64_t old_bytes, uint64_t item_bytes);

/* Note that a write to the tier failed. Until a write succeeds,
 * tier_reserve_well() limits reservations. Returns true if the previous write
 * had succeeded. */
bool tier_failed(struct tier *t);

/* Turn a reservation into an entry. Returns true if this is the first success
 * after tier_failed(). */
bool tier_commit(struct tier *t, uint64_t item_bytes);

void tier_count_error(struct tier *t);

/* Has the directory of the tier been deleted? */
bool tier_was_deleted(const struct tier *t);

/*
 * Note that an item was refused because the tier is full, or that an entry was
 * deleted. Both return true if the reported state changed. A tier that was
 * reported as full counts as full until less than nine tenths of it are used.
 */
bool tier_note_full(struct tier *t);
bool tier_note_room(struct tier *t);

/* Add the charge of an entry that was found, or subtract that of one that was
 * deleted. */
void tier_charge(struct tier *t, uint64_t item_bytes);
void tier_uncharge(struct tier *t, uint64_t item_bytes);

/* Stop admission, because some entries may not be charged. */
void tier_close_admission(struct tier *t);

/* tier_root.c: tier_root_begin() opens the cache root and gets a grant. Returns
 * a descriptor, whose closing unlocks the root, or -errno. tier_keep_free()
 * sets the space that must stay free. tier_watch() notes the free space and
 * gets a larger grant; it blocks. tier_root_end() returns the space that a tier
 * does not use, if all its entries are counted, and deletes an empty tier that
 * this mount has made. tier_root_undo() removes a grant that tier_root_begin()
 * added. */
int tier_root_begin(
	struct tier *t, const struct tier_config *config, struct error *err);
int tier_keep_free(struct tier *t, const char *text, struct error *err);
void tier_watch(struct tier *t);
void tier_root_end(struct tier *t, bool complete);
void tier_root_undo(struct tier *t);
static inline bool tier_is_watched(const struct tier *t)
{
	return t->root_fd >= 0 || t->keep_bytes > 0;
}

void tier_status(struct tier *t, struct tier_status *status);

#endif

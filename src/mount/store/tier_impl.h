/* SPDX-License-Identifier: MIT */
/*
 * One tier: the open directory, its lock and its budget. The budget's
 * functions may be called from any thread; opening and closing from one.
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

struct tier {
	/* Set once, by tier_open(). */
	char *dir;
	int fd;
	int lock_fd;
	dev_t dev;
	ino_t ino;
	uint64_t block_bytes;
	uid_t uid;		  /* the directory's owner */
	bool in_memory;		  /* its file system is in memory */
	gid_t group;		  /* (gid_t)-1: none */
	bool made_dir, made_lock; /* removed again if another tier fails */
	bool lost_identity;	  /* it was a tier, and becomes one again */

	/* Relaxed: any thread clears it when it finds that unnamed files do not
	 * work. */
	_Atomic bool tmpfile;

	/* Rank: below the shards of entries; no other lock is taken while it is
	 * held. */
	pthread_mutex_t lock;
	uint64_t capacity_bytes; /* lock, from the first admission on */
	uint64_t charged_bytes;	 /* lock */
	uint64_t reserved_bytes; /* lock */
	uint64_t resident_bytes; /* lock */
	uint64_t entries;	 /* lock */
	uint64_t errors;	 /* lock: operations that failed */
	bool full;		 /* lock: it was reported as full */
	/* Lock: some entries are not charged, so nothing is admitted */
	bool closed;
	/* Lock: the time of the next attempt after a failed write; 0: the last
	 * write did not fail. */
	uint64_t retry_ns;
};

/*
 * Open, check and lock the directory; create it if it is missing. Changes
 * nothing else in it. On failure nothing is left behind or open.
 */
int tier_open(struct tier *t, const struct tier_config *config,
	const char *dataset, gid_t group, struct error *err);

/* Make the directory a tier of the dataset: create identity and
 * sub-directories. */
int tier_make(struct tier *t, const char *dataset, struct error *err);

/* Unlock and close the tier. With `undo`, also delete what tier_open()
 * created. */
void tier_close(struct tier *t, bool undo);

/* Create one sub-directory with the tier's modes. Returns 0 also if it
 * exists. */
int tier_make_subdir(const struct tier *t, const char *name);

/* The space charged for an entry of item_bytes content bytes. */
uint64_t tier_charge_of(const struct tier *t, uint64_t item_bytes);

int tier_resize(struct tier *t, uint64_t capacity_bytes);

bool tier_reserve(struct tier *t, uint64_t charge_bytes);

/* Like tier_reserve(), but if the last write to the tier failed, it allows one
 * reservation per second. */
bool tier_reserve_well(struct tier *t, uint64_t charge_bytes);
void tier_unreserve(struct tier *t, uint64_t charge_bytes);

/* Would an item fit if this entry were deleted? */
bool tier_may_exchange(struct tier *t, uint64_t old_bytes, uint64_t item_bytes);

/* Note that a write to the tier failed. Until one succeeds, tier_reserve_well()
 * limits reservations. Returns true if the write before succeeded. */
bool tier_failed(struct tier *t);

/* Turn a reservation into an entry. Returns true for the first one after
 * tier_failed(). */
bool tier_commit(struct tier *t, uint64_t item_bytes);

void tier_count_error(struct tier *t);

/* Has the directory been deleted? */
bool tier_was_deleted(const struct tier *t);

/*
 * Note that an item was refused for lack of room, or that room was made.
 * Returns true if the state changed; a tier counts as full until less than nine
 * tenths of it are used.
 */
bool tier_note_full(struct tier *t);
bool tier_note_room(struct tier *t);

/* Note that an entry was found, or was deleted. */
void tier_charge(struct tier *t, uint64_t item_bytes);
void tier_uncharge(struct tier *t, uint64_t item_bytes);

/* There may be entries that are not charged: stop admission. */
void tier_close_admission(struct tier *t);

void tier_status(struct tier *t, struct tier_status *status);

#endif

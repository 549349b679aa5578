/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the store: the struct and common steps.
 */
#ifndef STORE_IMPL_H
#define STORE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "common/base/magic.h"
#include "mount/store/entry_table_impl.h"
#include "mount/store/store.h"
#include "mount/store/tier_impl.h"

struct store {
	uint32_t magic;
	/* Set once, by store_open(). */
	struct counters *counters;
	const struct event_sink *events; /* or NULL */
	struct entries *entries;
	struct tier tiers[STORE_TIERS_MAX];
	size_t ntiers;
	bool verify;
	bool write_out;
	mode_t file_mode;
	pthread_t scanner;

	/* Set (release) by the scanner when all entries are in the table; read
	 * (acquire) by threads that need the complete table. */
	_Atomic bool ready;
	_Atomic bool stop; /* relaxed: store_close() to the scanner */

	/* For threads that wait until the store is ready. Rank: taken alone. */
	pthread_mutex_t ready_lock;
	pthread_cond_t ready_cond; /* ready changed */
};

/* Report an event concerning a tier. */
void store_report(
	struct store *s, size_t tier, enum event_kind kind, const char *path);

/* The file that a deletion may delete. */
enum removal {
	REMOVE_ANY,  /* any file of that name */
	REMOVE_SEEN, /* the file that was read */
	REMOVE_LOST, /* none: the entry is only in the table */
};

/*
 * Delete an entry that entries_drop() has returned from the disk, the budget
 * and the table. Returns false if it stays, because the name belongs to another
 * file now or because deleting failed, which is counted.
 */
bool store_remove(struct store *s, const struct entry_ref *ref,
	enum removal removal, const struct stat *seen);

/*
 * Add and charge an entry found on disk. Returns 1 if this call did so, 0 if
 * it is known already (its state in *now), or -ENOMEM.
 */
int store_adopt(
	struct store *s, const struct entry_ref *ref, struct entry_ref *now);

/* Read len bytes and, if they follow, up to `more` others. Returns the number
 * or -errno; it is less than len only at the end of the file. */
ssize_t store_pread(int fd, void *buf, size_t len, size_t more, uint64_t off);

/* Find an entry. Returns false if there is none. */
bool store_find(struct store *s, struct hash128 key, uint64_t item_bytes,
	struct entry_ref *ref);

/* Write and link one entry. Returns 0 or -errno. The caller owns the entry's
 * cell. */
int store_write_entry(
	struct store *s, const struct entry_ref *ref, const void *data);

/* The thread that reads all directories, then opens admission; arg is the
 * store. */
void *store_scan(void *arg);

#endif

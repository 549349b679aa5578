/* SPDX-License-Identifier: MIT */
/*
 * Struct store, and functions that several files of the store use.
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
	const struct event_sink *events; /* may be NULL */
	struct entries *entries;
	struct tier tiers[STORE_TIERS_MAX];
	size_t ntiers;
	bool verify;
	bool write_out;
	mode_t file_mode;
	pthread_t scanner;

	/* Set (release) by the background thread when the table has all
	 * entries; read (acquire) by threads that need the complete table. */
	_Atomic bool ready;
	/* relaxed: store_close() tells the background thread */
	_Atomic bool stop;

	/* Threads that wait until the store is ready wait with this lock. It
	 * guards no data. No other lock is taken while it is held. */
	pthread_mutex_t ready_lock;
	pthread_cond_t ready_cond; /* signalled when `ready` has been set */
};

/* Report an event of a tier. `path` is the path of an entry, or NULL. */
void store_report(
	struct store *s, size_t tier, enum event_kind kind, const char *path);

/* Which file store_remove() may delete. */
enum removal {
	REMOVE_ANY,  /* any file with the name of the entry */
	REMOVE_SEEN, /* only the file that was read */
	REMOVE_LOST, /* no file: the entry exists only in the table */
};

/* Delete an entry that entries_drop() has returned: its file, its charge and
 * its cell. Returns false if the entry stays, because its name belongs to
 * another file now or because deleting failed. A failure is counted. */
bool store_remove(struct store *s, const struct entry_ref *ref,
	enum removal removal, const struct stat *seen);

/* Add and charge an entry found on disk. Returns 1; 0 if the table has the
 * entry already, with its state in *now; or -ENOMEM. */
int store_adopt(
	struct store *s, const struct entry_ref *ref, struct entry_ref *now);

/* Read len bytes, and up to `more` bytes that follow them. Returns the number
 * of bytes read, which is less than len only at the end of the file, or
 * -errno. */
ssize_t store_pread(int fd, void *buf, size_t len, size_t more, uint64_t off);

/* Find an entry and set *ref. Returns false if there is none. */
bool store_find(struct store *s, struct hash128 key, uint64_t item_bytes,
	struct entry_ref *ref);

/* Write and link one entry. The caller owns the cell of the entry. Returns 0 or
 * -errno. */
int store_write_entry(
	struct store *s, const struct entry_ref *ref, const void *data);

/* Main function of the background thread, which reads all directories and then
 * opens admission. `arg` is the store. */
void *store_scan(void *arg);

#endif

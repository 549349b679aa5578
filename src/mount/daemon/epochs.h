/* SPDX-License-Identifier: MIT */
/*
 * Finds out, from the misses of the cache alone, which epoch the readers of a
 * mount are in, how much of it they have read, how long they waited, and how
 * much faster a larger cache would be.
 *
 * An epoch reads each item once, and the cache evicts nothing, so each epoch
 * misses the same items: those that were not cached when it began. The next
 * epoch begins when items miss a second time. Hits are not used, because the
 * mount does not see all of them: the kernel answers many, and loaders that
 * open entries themselves answer others.
 *
 * The kernel may also answer reads that would miss. Then an epoch has fewer
 * misses than uncached items, which is only known at its end. So nothing is
 * reported during the second epoch unless the kernel's pages are limited
 * (--pages), and nothing after an epoch with too few misses.
 *
 * Data is kept for a sample of at most EPOCHS_ITEMS items. Any thread may call.
 * The caller passes the time, so that tests need no clock.
 */
#ifndef DAEMON_EPOCHS_H
#define DAEMON_EPOCHS_H

#include <stdbool.h>
#include <stdint.h>

#define EPOCHS_ITEMS 16384u

struct epochs;

/* The state of a mount at one time. Counters start with the mount. */
struct epochs_look {
	uint64_t time_ns;
	/* Set only by callers of epochs_tell() and epochs_delivered(). 0: the
	 * source has not been listed yet. */
	uint64_t dataset_bytes;
	/* Size of items that are planned, fetched or not */
	uint64_t planned_bytes;
	/* Content in the tiers. It is 0 until the tiers have been listed, which
	 * `ready` shows. */
	uint64_t resident_bytes;
	bool ready;
	/* Bytes that were read from tiers, also by loaders that open entries.
	 */
	uint64_t hit_bytes;
	uint64_t miss_bytes;
	uint64_t origin_bytes;
	uint64_t starved_us;
};

struct epochs_config {
	/* Fill in the present state. epochs_missed() calls this with its lock
	 * held. */
	void (*look)(void *arg, struct epochs_look *now);
	void *arg;
	/* Limit for the kernel's pages of items that missed; 0: no limit. */
	uint64_t pages_bytes;
};

/* Returns NULL if memory is short. */
struct epochs *epochs_new(const struct epochs_config *config);
void epochs_free(struct epochs *e); /* NULL is allowed */

/* Note that the first byte of an item was read and no tier had the item. */
struct epochs_miss {
	uint64_t key; /* key of the item; uniformly distributed */
	uint64_t bytes;
	uint64_t planned_bytes; /* as in struct epochs_look */
	uint64_t time_ns;
};
void epochs_missed(struct epochs *e, const struct epochs_miss *miss);

/* The value of a percentage that is not known. */
#define EPOCHS_UNKNOWN (-1)

/* An estimate for a larger cache. */
struct epochs_gain {
	uint64_t cache_bytes; /* bytes that this cache would hold */
	/* Range of the time of an epoch with this cache */
	uint64_t least_ms, most_ms;
};

/* All percentages are percentages of bytes, except waited_pct. */
struct epochs_news {
	/* number of the epoch, beginning with 1; 0: not known */
	uint64_t epoch;
	int done_pct;
	/* Expected hits: bytes that were cached when the epoch began */
	int expected_pct;
	int hits_pct; /* hits that the mount has seen */
	/* Percentage of time in which a READ waited for the source */
	int waited_pct;
	/* The time of an epoch with the present cache; and estimates for a
	 * cache with half as many misses, and for one with none. All are 0 if
	 * they are not known. */
	uint64_t epoch_ms;
	struct epochs_gain larger, whole;
};

/* Get the news. Returns false if nothing is known at present. */
bool epochs_tell(struct epochs *e, const struct epochs_look *now,
	struct epochs_news *out);

/* Get the bytes that the source has delivered in this epoch. Unlike the news,
 * this is known even if the kernel answers some reads. Returns false if there
 * are no misses at present, or if items of the next epoch are fetched ahead. */
bool epochs_delivered(
	struct epochs *e, const struct epochs_look *now, uint64_t *bytes);

#endif

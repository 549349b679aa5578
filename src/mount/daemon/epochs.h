/* SPDX-License-Identifier: MIT */
/*
 * Finds out which epoch the readers of a mount are in, how far they are, how
 * long they waited, and what a larger cache would bring, from the misses of the
 * cache alone.
 *
 * An epoch reads each item once, and nothing is evicted, so each epoch misses
 * the same items: those that were not resident when it began. An item that
 * misses a second time begins the next epoch. Hits are not used: the kernel
 * answers many of them, and loaders that open entries themselves answer others.
 *
 * The kernel may answer misses, too. That shows when an epoch misses fewer
 * items than were absent, but only when it is over. So nothing is reported
 * during the second epoch unless the kernel's pages are bounded (--pages), nor
 * after an epoch with too few misses.
 *
 * A sample of at most EPOCHS_ITEMS items is kept. Any thread may call. The
 * caller passes in the time, so that tests need no clock.
 */
#ifndef DAEMON_EPOCHS_H
#define DAEMON_EPOCHS_H

#include <stdbool.h>
#include <stdint.h>

#define EPOCHS_ITEMS 16384u

struct epochs;

/* The state of a mount at one time; counters are since its start. */
struct epochs_look {
	uint64_t time_ns;
	/* Set only by callers that ask. 0: the source is not listed yet. */
	uint64_t dataset_bytes;
	uint64_t planned_bytes; /* bytes fetched ahead for plans, or planned */
	/* Content in the tiers; 0 and not `ready` while they are listed. */
	uint64_t resident_bytes;
	bool ready;
	/* Bytes answered from tiers, including by loaders that open entries. */
	uint64_t hit_bytes;
	uint64_t miss_bytes;
	uint64_t origin_bytes;
	uint64_t starved_us;
};

struct epochs_config {
	/* Called from epochs_missed() with the lock held. */
	void (*look)(void *arg, struct epochs_look *now);
	void *arg;
	/* Limit of the kernel's pages of items that missed; 0: none. */
	uint64_t pages_bytes;
};

/* NULL: no memory. */
struct epochs *epochs_new(const struct epochs_config *config);
void epochs_free(struct epochs *e); /* NULL is allowed */

/* Note that the first byte of an item was read, and no tier had it. */
struct epochs_miss {
	uint64_t key; /* uniformly distributed */
	uint64_t bytes;
	uint64_t planned_bytes; /* as in struct epochs_look */
	uint64_t time_ns;
};
void epochs_missed(struct epochs *e, const struct epochs_miss *miss);

/* The value of a percentage that is not known. */
#define EPOCHS_UNKNOWN (-1)

struct epochs_gain {
	uint64_t cache_bytes;	    /* content in the cache */
	uint64_t least_ms, most_ms; /* time of an epoch */
};

/* Shares count bytes, except waited_pct. */
struct epochs_news {
	uint64_t epoch; /* from 1; 0: the number is not known */
	int done_pct;
	/* Expected hits: what was resident when the epoch began */
	int expected_pct;
	int hits_pct;	/* those that the mount has seen */
	int waited_pct; /* time in which a READ waited for the source */
	/* The time of an epoch with the present cache; the gains with half as
	 * many misses, and with none. All 0: not known. */
	uint64_t epoch_ms;
	struct epochs_gain larger, whole;
};

/* Returns false if nothing is known now. */
bool epochs_tell(struct epochs *e, const struct epochs_look *now,
	struct epochs_news *out);

/* Get the bytes that the source delivered in this epoch. Unlike the news, this
 * is known even if the kernel answers some reads. Returns false while there are
 * no misses, or if items are fetched ahead over the end of an epoch. */
bool epochs_delivered(
	struct epochs *e, const struct epochs_look *now, uint64_t *bytes);

#endif

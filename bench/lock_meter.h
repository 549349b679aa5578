/* SPDX-License-Identifier: MIT */
/* Measures how often a lock is taken, and for how long it is held. A program
 * that is linked with lock_meter.c uses its pthread_mutex_lock() and related
 * functions in place of the C library's. For a lock that is not watched, they
 * cost one comparison more. */
#ifndef BENCH_LOCK_METER_H
#define BENCH_LOCK_METER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCK_METERS 8u
/* a lock whose limit is below this rate fails the measurement */
#define LOCK_BAR_PER_S 100000u

/* Sums for a lock since it was watched first. */
struct lock_use {
	uint64_t taken;
	/* time for which it was held, without the time of measuring */
	uint64_t held_ns;
	uint64_t longest_ns;
	/* Number and time of the holds that took more than LOCK_TORN_NS: in
	 * these, the thread most likely lost its processor. The sums above
	 * leave them out. */
	uint64_t torn, torn_ns;
};
#define LOCK_TORN_NS 100000u

/* Watch a lock that no other thread uses yet. Returns its number; -1 if too
 * many are watched. */
int lock_meter_watch(const pthread_mutex_t *mutex);

/* Watch no lock any more. No thread may use a watched lock during this call. */
void lock_meter_forget(void);

/* Returns the sums of a lock. They are consistent if no thread holds the lock.
 */
struct lock_use lock_meter_use(int number);

/* Print a line for a lock: how often it was taken and how long it was held for
 * each unit, and the rate of units that it allows at most, without and with
 * torn holds. Returns true if the rate without torn holds is at least
 * LOCK_BAR_PER_S. */
bool lock_meter_print(
	int number, const char *name, uint64_t units, const char *unit);

#endif

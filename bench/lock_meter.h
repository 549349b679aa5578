/* SPDX-License-Identifier: MIT */
/*
 * Measures how often a lock is taken, and for how long it is held. In a program
 * that is linked with lock_meter.c, its pthread_mutex_lock() and related
 * functions stand between the code under test and the C library; nothing else
 * changes. A lock that is not watched costs one more comparison.
 */
#ifndef BENCH_LOCK_METER_H
#define BENCH_LOCK_METER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCK_METERS 8u
#define LOCK_BAR_PER_S 100000u /* no lock may be the limit below this rate */

/* Sums since the lock was watched first. */
struct lock_use {
	uint64_t taken;
	uint64_t held_ns; /* without the time of measuring */
	uint64_t longest_ns;
	/* Holds of more than LOCK_TORN_NS, in which the thread most likely lost
	 * its processor. The sums above do not include them. */
	uint64_t torn, torn_ns;
};
#define LOCK_TORN_NS 100000u

/*
 * Watch a lock, before other threads use it. Returns its number, or -1 if there
 * are too many.
 */
int lock_meter_watch(const pthread_mutex_t *mutex);

/* Stop to watch all locks. No thread may use them meanwhile. */
void lock_meter_forget(void);

/* The sums of a lock. They agree with each other while no thread holds it. */
struct lock_use lock_meter_use(int number);

/*
 * Print a line for a lock: how often it was taken and how long it was held for
 * each of `units`, and the rate of units at which it would be the limit,
 * without and with torn holds. Returns true if the rate without them reaches
 * LOCK_BAR_PER_S.
 */
bool lock_meter_print(
	int number, const char *name, uint64_t units, const char *unit);

#endif

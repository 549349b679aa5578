/* SPDX-License-Identifier: MIT */
/*
 * How often a lock is taken, and for how long it is held. A program that is
 * linked with lock_meter.c has its pthread_mutex_lock() and its kin between
 * the code under test and the C library; nothing else changes. Locks that are
 * not watched cost one comparison each.
 */
#ifndef BENCH_LOCK_METER_H
#define BENCH_LOCK_METER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCK_METERS 8u
#define LOCK_BAR_PER_S 100000u /* a lock may not be the limit below this */

/* Sums since the lock is watched. */
struct lock_use {
	uint64_t taken;
	uint64_t held_ns; /* without the measuring itself */
	uint64_t longest_ns;
	/* Holds of more than LOCK_TORN_NS: most likely, the thread lost its
	 * processor. Neither counted above nor in the sums. */
	uint64_t torn, torn_ns;
};
#define LOCK_TORN_NS 100000u

/*
 * Watch a lock, before other threads use it. Returns its number, or -1 if there
 * are too many.
 */
int lock_meter_watch(const pthread_mutex_t *mutex);

/* Watch none of them any more. Nobody uses them. */
void lock_meter_forget(void);

/* While nobody holds it, the sums agree with each other. */
struct lock_use lock_meter_use(int number);

/*
 * Print a line for a lock: how often it was taken and how long it was held for
 * each of `units`, and the rate of units at which it would be the limit,
 * without and with the holds that are torn. Returns whether the rate without
 * them reaches LOCK_BAR_PER_S.
 */
bool lock_meter_print(
	int number, const char *name, uint64_t units, const char *unit);

#endif

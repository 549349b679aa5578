/* SPDX-License-Identifier: MIT */
/*
 * Condition variables that wait until a time of clock_now_ns(), which does not
 * jump when somebody sets the date.
 */
#ifndef BASE_COND_H
#define BASE_COND_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/clock.h"

/* Initialise a condition for cond_wait_until(). None of these calls can fail on
 * Linux. */
static inline void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

/* Wait like pthread_cond_wait(), but at most until the given time. Returns
 * false when that time has come. */
static inline bool cond_wait_until(
	pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};

	return pthread_cond_timedwait(cond, mutex, &ts) == 0;
}

/* Wait up to a second until the count is 0. The caller holds the mutex, which
 * guards the count; the condition is signalled when the count falls to 0.
 * Returns true if the count is 0. */
static inline bool cond_wait_zero(
	pthread_cond_t *cond, pthread_mutex_t *mutex, const unsigned *count)
{
	uint64_t until_ns = clock_now_ns() + NS_PER_S;

	while (*count > 0 && cond_wait_until(cond, mutex, until_ns))
		;
	return *count == 0;
}

#endif

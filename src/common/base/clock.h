/* SPDX-License-Identifier: MIT */
/* Clocks in nanoseconds: monotonic time and the CPU time of threads. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/* The time for which a close waits is multiplied by this factor in builds for
 * valgrind and with sanitizers. They make programs slow, and without the
 * factor, slow reads and threads would count as hung. */
#ifndef TIME_LIMIT_FACTOR
#define TIME_LIMIT_FACTOR 1
#endif

static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Returns the time of a file as one number. Times after the year 2262 wrap
 * around. This does no harm, because times are only compared for equality. */
static inline int64_t clock_file_ns(int64_t s, int64_t ns)
{
	return (int64_t)((uint64_t)s * NS_PER_S + (uint64_t)ns);
}

/* Returns the CPU time of a thread that has not been joined; 0 if the thread
 * has ended. This is a system call of half a microsecond; the calling thread's
 * own time costs 20 ns. */
static inline uint64_t clock_cpu_of_ns(pthread_t thread)
{
	struct timespec ts = {0};
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) != 0 ||
		clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif

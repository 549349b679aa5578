/* SPDX-License-Identifier: MIT */
/* Measures locks: defines the C library's functions for mutexes, which call the
 * original ones and measure how long a lock is held. Only the thread that holds
 * a lock writes its sums, so the sums need no lock. */
#include "lock_meter.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/base/clock.h"

#define PROBE_ROUNDS 10000

struct meter {
	const pthread_mutex_t *mutex; /* set before other threads use it */
	uint64_t since_ns; /* guarded by `mutex`, as are the next members */
	struct lock_use use;
};

static struct meter meters[LOCK_METERS];
static unsigned nmeters;
static uint64_t probe_ns; /* time that one call of the clock takes */

static struct {
	int (*lock)(pthread_mutex_t *);
	int (*trylock)(pthread_mutex_t *);
	int (*unlock)(pthread_mutex_t *);
	int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	int (*timedwait)(
		pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
} next;

/* dlsym() returns an object pointer, which ISO C cannot cast to a function
 * pointer; so the pointer's memory is written. */
#define FIND(member, name) (*(void **)&next.member = dlsym(RTLD_NEXT, name))

__attribute__((constructor)) static void find_next(void)
{
	FIND(lock, "pthread_mutex_lock");
	FIND(trylock, "pthread_mutex_trylock");
	FIND(unlock, "pthread_mutex_unlock");
	FIND(wait, "pthread_cond_wait");
	FIND(timedwait, "pthread_cond_timedwait");
}

static struct meter *meter_of(const pthread_mutex_t *mutex)
{
	for (unsigned i = 0; i < nmeters; i++)
		if (meters[i].mutex == mutex)
			return &meters[i];
	return NULL;
}

static void meter_taken(const pthread_mutex_t *mutex)
{
	struct meter *m = meter_of(mutex);

	if (m)
		m->since_ns = clock_now_ns();
}

static void meter_dropped(const pthread_mutex_t *mutex)
{
	struct meter *m = meter_of(mutex);
	uint64_t held_ns;

	/* the thread took the lock before the lock was watched */
	if (!m || !m->since_ns)
		return;
	held_ns = clock_now_ns() - m->since_ns;
	if (held_ns > LOCK_TORN_NS) {
		m->use.torn++;
		m->use.torn_ns += held_ns;
		return;
	}
	held_ns -= held_ns < probe_ns ? held_ns : probe_ns;
	m->use.taken++;
	m->use.held_ns += held_ns;
	if (held_ns > m->use.longest_ns)
		m->use.longest_ns = held_ns;
}

/* -- Functions that replace those of the C library ------------------------- */

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int rc;

	/* another library's constructor calls this before the own one has run
	 */
	if (!next.lock)
		find_next();
	rc = next.lock(mutex);
	meter_taken(mutex);
	return rc;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int rc;

	if (!next.trylock)
		find_next();
	rc = next.trylock(mutex);
	if (rc == 0)
		meter_taken(mutex);
	return rc;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (!next.unlock)
		find_next();
	meter_dropped(mutex);
	return next.unlock(mutex);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int rc;

	meter_dropped(mutex);
	rc = next.wait(cond, mutex);
	meter_taken(mutex);
	return rc;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
	const struct timespec *until)
{
	int rc;

	meter_dropped(mutex);
	rc = next.timedwait(cond, mutex, until);
	meter_taken(mutex);
	return rc;
}

/* -- For the program ------------------------------------------------------- */

static void measure_probe(void)
{
	uint64_t begin_ns = clock_now_ns();

	for (int i = 0; i < PROBE_ROUNDS; i++)
		/* this call only measures how long the clock takes */
		(void)clock_now_ns();
	probe_ns = (clock_now_ns() - begin_ns) / PROBE_ROUNDS;
}

int lock_meter_watch(const pthread_mutex_t *mutex)
{
	if (nmeters == LOCK_METERS)
		return -1;
	if (nmeters == 0)
		measure_probe();
	meters[nmeters] = (struct meter){.mutex = mutex};
	return (int)nmeters++;
}

void lock_meter_forget(void)
{
	nmeters = 0;
}

struct lock_use lock_meter_use(int number)
{
	return meters[number].use;
}

/* Returns the rate. A lock that was held for less than 1 ns counts as held for
 * 1 ns. */
static double units_a_second(double units, uint64_t held_ns)
{
	return units * 1e9 / (double)(held_ns ? held_ns : 1);
}

bool lock_meter_print(
	int number, const char *name, uint64_t units, const char *unit)
{
	struct lock_use use = lock_meter_use(number);
	double n = (double)(units ? units : 1);
	double rate = units_a_second(n, use.held_ns);
	bool pass = rate >= LOCK_BAR_PER_S;

	printf("%-12s taken %7.2f times and held %8.1f ns per %s, "
	       "longest %6.1f us: the limit at %.0f %ss/s; with %" PRIu64
	       " torn, %.0f: %s\n",
		name, (double)use.taken / n, (double)use.held_ns / n, unit,
		(double)use.longest_ns / 1e3, rate, unit, use.torn,
		units_a_second(n, use.held_ns + use.torn_ns),
		pass ? "PASS" : "FAIL");
	return pass;
}

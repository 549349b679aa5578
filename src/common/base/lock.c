/* SPDX-License-Identifier: MIT */
/*
 * Checks the order of locks in builds with --enable-debug or a sanitizer. Each
 * thread has a list of the ranked locks that it holds. A thread that waits for
 * a condition keeps the lock of the condition in its list: it has the lock
 * again before it continues.
 */
#include "common/base/lock.h"

#if defined(CHECK_LOCKS) && defined(__GLIBC__)

#undef pthread_mutex_lock
#undef pthread_mutex_trylock
#undef pthread_mutex_unlock
#undef pthread_rwlock_rdlock
#undef pthread_rwlock_wrlock
#undef pthread_rwlock_unlock

#include <stdio.h>
#include <stdlib.h>

enum { RANK_ALONE = 90 }; /* above all ranks except those of the log's locks */

static const struct {
	const char *name;
	unsigned rank;
} row[] = {
	[RANK_NONE] = {"a lock without a rank", 0},
#define LOCK(id, rank, lock, room, guards, inside) {lock, rank},
#include "common/base/lock_ranks.def"
#undef LOCK
};

/* More locks than a thread can hold in the order of their ranks: a thread that
 * reaches this number has forgotten to unlock some. */
enum { HELD_MAX = 16 };

static _Thread_local struct {
	struct {
		const void *lock;
		unsigned name;
	} lock[HELD_MAX];
	unsigned n;
} held;

static unsigned name_of(const pthread_mutex_t *mutex)
{
	return (unsigned)mutex->__data.__spins;
}

static unsigned name_of_rw(const pthread_rwlock_t *lock)
{
	return (unsigned)lock->__data.__pad2;
}

static void check_order(unsigned name)
{
	for (unsigned i = 0; name && i < held.n; i++) {
		if (row[held.lock[i].name].rank < row[name].rank)
			continue;
		fprintf(stderr,
			"lock order: %s (rank %u) is taken while %s (rank %u) "
			"is held\n",
			row[name].name, row[name].rank,
			row[held.lock[i].name].name,
			row[held.lock[i].name].rank);
		abort();
	}
}

static void note_held(const void *lock, unsigned name)
{
	if (!name)
		return;
	assert(held.n < HELD_MAX);
	held.lock[held.n].lock = lock;
	held.lock[held.n++].name = name;
}

static void note_left(const void *lock)
{
	for (unsigned i = held.n; i-- > 0;)
		if (held.lock[i].lock == lock) {
			held.lock[i] = held.lock[--held.n];
			return;
		}
}

void lock_init(pthread_mutex_t *mutex, enum lock_name name)
{
	(void)pthread_mutex_init(mutex, NULL); /* cannot fail on Linux */
	mutex->__data.__spins = (short)name;
}

void lock_init_rw(pthread_rwlock_t *lock, enum lock_name name)
{
	(void)pthread_rwlock_init(lock, NULL); /* cannot fail on Linux */
	lock->__data.__pad2 = name;
}

int lock_take(pthread_mutex_t *mutex)
{
	int rc;

	check_order(name_of(mutex));
	rc = pthread_mutex_lock(mutex);
	note_held(mutex, name_of(mutex));
	return rc;
}

int lock_try(pthread_mutex_t *mutex)
{
	int rc = pthread_mutex_trylock(mutex);

	if (rc == 0)
		note_held(mutex, name_of(mutex));
	return rc;
}

int lock_leave(pthread_mutex_t *mutex)
{
	note_left(mutex);
	return pthread_mutex_unlock(mutex);
}

int lock_take_to_read(pthread_rwlock_t *lock)
{
	int rc;

	check_order(name_of_rw(lock));
	rc = pthread_rwlock_rdlock(lock);
	note_held(lock, name_of_rw(lock));
	return rc;
}

int lock_take_to_write(pthread_rwlock_t *lock)
{
	int rc;

	check_order(name_of_rw(lock));
	rc = pthread_rwlock_wrlock(lock);
	note_held(lock, name_of_rw(lock));
	return rc;
}

int lock_leave_rw(pthread_rwlock_t *lock)
{
	note_left(lock);
	return pthread_rwlock_unlock(lock);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * POSIX locks, with two additions that builds with --enable-debug or a
 * sanitizer check, and that other builds leave out.
 *
 * Ranks: lock_init() gives a lock its row of lock_ranks.def. A checked build
 * replaces the calls that lock and unlock in every file that includes this
 * header, and aborts with both names when a thread takes a lock whose rank is
 * not above the ranks of all locks that the thread holds.
 *
 * Assertions that a function's caller holds a lock: ASSERT_HELD(&x->lock) at
 * its beginning, or ASSERT_HELD_TO_WRITE() for a read-write lock.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Does the calling thread hold the mutex? Returns true where that is unknown.
 */
static inline bool lock_is_held(const pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
	return mutex->__data.__owner == (int)syscall(SYS_gettid);
#else
	(void)mutex;
	return true;
#endif
}

/* The same for a read-write lock held for writing. Readers are not recorded, so
 * holding it for reading cannot be checked. */
static inline bool lock_is_held_to_write(const pthread_rwlock_t *lock)
{
#ifdef __GLIBC__
	return lock->__data.__cur_writer == (int)syscall(SYS_gettid);
#else
	(void)lock;
	return true;
#endif
}

enum lock_name {
	RANK_NONE, /* a lock that is not in the table is not checked */
#define LOCK(name, rank, lock, room, guards, inside) RANK_##name,
#include "common/base/lock_ranks.def"
#undef LOCK
};

#ifdef CHECK_LOCKS
#define ASSERT_HELD(mutex) assert(lock_is_held(mutex))
#define ASSERT_HELD_TO_WRITE(lock) assert(lock_is_held_to_write(lock))
#else
#define ASSERT_HELD(mutex) ((void)(mutex))
#define ASSERT_HELD_TO_WRITE(lock) ((void)(lock))
#endif

#if defined(CHECK_LOCKS) && defined(__GLIBC__)

/* The row of a lock is stored in a member of the POSIX lock that glibc does not
 * use for it: __spins belongs to adaptive mutexes, __pad2 to no kind of
 * read-write lock. */
#define LOCK_INIT(name)                                                        \
	{                                                                      \
		.__data = {.__spins = (name) }                                 \
	}
void lock_init(pthread_mutex_t *mutex, enum lock_name name);
void lock_init_rw(pthread_rwlock_t *lock, enum lock_name name);

int lock_take(pthread_mutex_t *mutex);
int lock_try(pthread_mutex_t *mutex);
int lock_leave(pthread_mutex_t *mutex);
int lock_take_to_read(pthread_rwlock_t *lock);
int lock_take_to_write(pthread_rwlock_t *lock);
int lock_leave_rw(pthread_rwlock_t *lock);

#define pthread_mutex_lock(mutex) lock_take(mutex)
#define pthread_mutex_trylock(mutex) lock_try(mutex)
#define pthread_mutex_unlock(mutex) lock_leave(mutex)
#define pthread_rwlock_rdlock(lock) lock_take_to_read(lock)
#define pthread_rwlock_wrlock(lock) lock_take_to_write(lock)
#define pthread_rwlock_unlock(lock) lock_leave_rw(lock)

#else

/* The initial value of a lock with static or automatic storage. */
#define LOCK_INIT(name) PTHREAD_MUTEX_INITIALIZER

/* Initializing a mutex or a condition cannot fail on Linux. */
static inline void lock_init(pthread_mutex_t *mutex, enum lock_name name)
{
	(void)name;
	(void)pthread_mutex_init(mutex, NULL);
}

static inline void lock_init_rw(pthread_rwlock_t *lock, enum lock_name name)
{
	(void)name;
	(void)pthread_rwlock_init(lock, NULL);
}

#endif

#endif

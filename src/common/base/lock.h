/* SPDX-License-Identifier: MIT */
/*
 * POSIX locks with two additional checks, which only builds with --enable-debug
 * or a sanitizer make.
 *
 * Ranks: lock_init() gives a lock its row of lock_ranks.def. Such a build
 * replaces the calls that lock and unlock in every file that includes this
 * header. When a thread takes a lock whose rank is not above the ranks of all
 * locks that the thread holds, the program prints the names of both locks and
 * aborts.
 *
 * Assertions that the caller of a function holds a lock: ASSERT_HELD(&x->lock)
 * at the beginning of the function, or ASSERT_HELD_TO_WRITE() for a read-write
 * lock.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Does the calling thread hold the mutex? Returns true if the C library does
 * not tell. */
static inline bool lock_is_held(const pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
	return mutex->__data.__owner == (int)syscall(SYS_gettid);
#else
	(void)mutex;
	return true;
#endif
}

/* Does the calling thread hold the read-write lock for writing? The C library
 * does not record readers, so holding it for reading cannot be checked. */
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
 * use: only adaptive mutexes use __spins, and no kind of read-write lock uses
 * __pad2. */
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

/* The initial value of a lock that lock_init() does not initialise. */
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

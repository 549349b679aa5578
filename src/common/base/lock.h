/* SPDX-License-Identifier: MIT */
/*
 * Assertions that a function's caller holds a lock: ASSERT_HELD(&x->lock) at
 * its beginning, or ASSERT_HELD_TO_WRITE() for a read-write lock. Builds with
 * --enable-debug or a sanitizer check them; other builds compile them to
 * nothing.
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

#ifdef CHECK_LOCKS
#define ASSERT_HELD(mutex) assert(lock_is_held(mutex))
#define ASSERT_HELD_TO_WRITE(lock) assert(lock_is_held_to_write(lock))
#else
#define ASSERT_HELD(mutex) ((void)(mutex))
#define ASSERT_HELD_TO_WRITE(lock) ((void)(lock))
#endif

#endif

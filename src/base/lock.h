/* SPDX-License-Identifier: MIT */
/*
 * What a function needs of a lock, as an assertion: ASSERT_HELD(&x->lock) at
 * its beginning. Builds with --enable-debug or a sanitizer check it; in others
 * it costs nothing.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Does the calling thread hold the mutex? True where that cannot be told. */
static inline bool lock_is_held(const pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
	return mutex->__data.__owner == (int)syscall(SYS_gettid);
#else
	(void)mutex;
	return true;
#endif
}

#ifdef CHECK_LOCKS
#define ASSERT_HELD(mutex) assert(lock_is_held(mutex))
#else
#define ASSERT_HELD(mutex) ((void)0)
#endif

#endif

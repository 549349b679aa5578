/* SPDX-License-Identifier: MIT */
/* Scope cleanup: a variable declared with one of these macros is released when
 * it goes out of scope. steal_fd() and steal_ptr() return the value instead, so
 * that it is not released. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/lock.h"

static inline void cleanup_freep(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_closep(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd); /* nothing can be done if close() fails */
	errno = saved;
}

static inline void cleanup_closedirp(DIR **dir)
{
	if (*dir)
		/* nothing can be done if closedir() fails */
		(void)closedir(*dir);
}

static inline void cleanup_unlockp(pthread_mutex_t **mutex)
{
	if (*mutex)
		/* cannot fail: LOCK_SCOPE() has locked it */
		(void)pthread_mutex_unlock(*mutex);
}

static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *steal_ptr_impl(void *p)
{
	void *taken = *(void **)p;

	*(void **)p = NULL;
	return taken;
}

#define steal_ptr(p) ((__typeof__(*(p)))steal_ptr_impl(p))

#define CLEANUP_FREE __attribute__((cleanup(cleanup_freep)))
#define CLEANUP_FD __attribute__((cleanup(cleanup_closep)))
#define CLEANUP_DIR __attribute__((cleanup(cleanup_closedirp)))

#define LOCK_NAME_(line) lock_scope_##line
#define LOCK_NAME(line) LOCK_NAME_(line)
/* Hold the mutex until the end of the enclosing scope. */
#define LOCK_SCOPE(mutex)                                                      \
	pthread_mutex_t *LOCK_NAME(__LINE__)                                   \
		__attribute__((cleanup(cleanup_unlockp), unused)) =            \
			(pthread_mutex_lock(mutex), (mutex))

#endif

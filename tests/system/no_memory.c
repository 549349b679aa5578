/* SPDX-License-Identifier: MIT */
/* A library for LD_PRELOAD that makes one allocation fail: the one whose number
 * is in FAIL_AT. malloc, calloc, realloc and posix_memalign are counted; a
 * child after a fork continues to count. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* glibc's internal function; calling it needs no dlsym(), which would allocate
 */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static atomic_long count;
static long fail_at;

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("FAIL_AT");

	fail_at = text ? atol(text) : 0;
	atomic_store(&count, 0);
}

static bool fails(void)
{
	return fail_at > 0 && atomic_fetch_add(&count, 1) + 1 == fail_at;
}

void *malloc(size_t size)
{
	if (!fails())
		return __libc_malloc(size);
	errno = ENOMEM;
	return NULL;
}

void *calloc(size_t n, size_t size)
{
	if (!fails())
		return __libc_calloc(n, size);
	errno = ENOMEM;
	return NULL;
}

void *realloc(void *p, size_t size)
{
	if (!fails())
		return __libc_realloc(p, size);
	errno = ENOMEM;
	return NULL;
}

int posix_memalign(void **p, size_t align, size_t size)
{
	if (fails())
		return ENOMEM;
	*p = __libc_memalign(align, size);
	return *p ? 0 : ENOMEM;
}

/* SPDX-License-Identifier: MIT */
/* Gives each thread memory of its own; see per_thread.h. */
#include "common/base/per_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two cache lines, because processors fetch them in pairs. */
#define PER_THREAD_ALIGN 128

static struct per_thread *per_thread_new(struct per_threads *all)
{
	struct per_thread *s = aligned_alloc(PER_THREAD_ALIGN, all->bytes);

	if (!s)
		return NULL;
	memset(s, 0, all->bytes);
	atomic_init(&s->taken, true);
	s->next = atomic_load_explicit(&all->first, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&all->first, &s->next, s,
		memory_order_release, memory_order_relaxed))
		;
	return s;
}

/* The destructor of a thread's value. */
static void per_thread_give(void *arg)
{
	struct per_thread *s = arg;

	atomic_store_explicit(&s->taken, false, memory_order_release);
}

static struct per_thread *per_thread_find(struct per_threads *all)
{
	struct per_thread *s = per_threads_first(all);
	bool taken;

	for (; s; s = s->next) {
		taken = atomic_load_explicit(&s->taken, memory_order_relaxed);
		if (!taken &&
			atomic_compare_exchange_strong_explicit(&s->taken,
				&taken, true, memory_order_acquire,
				memory_order_relaxed))
			return s;
	}
	return per_thread_new(all);
}

struct per_thread *per_thread_take(struct per_threads *all)
{
	struct per_thread *s = pthread_getspecific(all->key);

	if (s)
		return s;
	s = per_thread_find(all);
	if (s && pthread_setspecific(all->key, s) != 0) {
		per_thread_give(s);
		return NULL;
	}
	return s;
}

int per_threads_init(struct per_threads *s, size_t bytes)
{
	*s = (struct per_threads){.bytes = (bytes + PER_THREAD_ALIGN - 1) /
			PER_THREAD_ALIGN * PER_THREAD_ALIGN};
	return pthread_key_create(&s->key, per_thread_give) != 0 ? -ENOMEM : 0;
}

void per_threads_release(struct per_threads *s)
{
	struct per_thread *next;

	(void)pthread_key_delete(s->key); /* it exists */
	for (struct per_thread *at = s->first; at; at = next) {
		next = at->next;
		free(at);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Gives each thread memory of its own in which it counts or records, so that no
 * cache line goes from one processor to another. A piece of such memory is a
 * *shard*, which belongs to one thread at a time. When the thread ends, its
 * shard stays with its contents, and the next new thread takes it over, so
 * there are no more shards than there were threads at once. Any thread may take
 * its shard, and look at all shards.
 */
#ifndef BASE_PER_THREAD_H
#define BASE_PER_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The first member of the caller's struct. */
struct per_thread {
	struct per_thread *next; /* private; set once */
	atomic_bool taken;	 /* private */
};

/* All private. */
struct per_threads {
	pthread_key_t key;
	size_t bytes;
	_Atomic(struct per_thread *) first;
};

/* Prepare an empty list of shards. `bytes` is the size of the caller's struct,
 * which begins as zeros. Returns 0 or -ENOMEM. */
int per_threads_init(struct per_threads *s, size_t bytes);
/* Free all shards. No thread may use them any more. */
void per_threads_release(struct per_threads *s);

/* Returns the shard of this thread; NULL if memory is short. */
struct per_thread *per_thread_take(struct per_threads *s);

/* These two loop over all shards: they return the first shard and the one after
 * it, or NULL. */
static inline struct per_thread *per_threads_first(const struct per_threads *s)
{
	return atomic_load_explicit(&s->first, memory_order_acquire);
}

static inline struct per_thread *per_threads_next(
	const struct per_thread *shard)
{
	return shard->next;
}

#endif

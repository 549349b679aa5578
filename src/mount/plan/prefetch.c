/* SPDX-License-Identifier: MIT */
/*
 * Detects sequential reading. A small hash table has the last run of reads of
 * each file. If two files have the same element, their runs replace each other,
 * and less is fetched ahead for both. Each element has a lock, which is held
 * for a few instructions.
 */
#include "mount/plan/prefetch.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/lock.h"

#define READ_RUNS 256u
#define WINDOW_FIRST_BYTES ((uint64_t)512 << 10)

/*
 * The window is the number of bytes that a reader can read during one request
 * to the origin. READER_BYTES_MS is more than a mount serves to one reader in a
 * millisecond, because only the duration of the shortest request is known, and
 * others take longer. A larger window would not help: bytes that arrive too
 * early are moved to a tier before the reader needs them, and must then be read
 * and verified there.
 */
#define READER_BYTES_MS ((uint64_t)2 << 20)
#define LIMIT_LEAST_BYTES ((uint64_t)2 << 20)

/* Reads of the kernel's own read-ahead arrive a little out of order. */
#define SLACK_BYTES ((uint64_t)512 << 10)

/* A reader must read this many bytes in a row before data is fetched ahead. The
 * kernel divides one read of a program into several, and a program that reads a
 * single range must not cause the fetch of a whole window. */
#define RUN_MIN_BYTES ((uint64_t)512 << 10)

/* After this many reads in a row behind `next`, the reader at `next` counts as
 * gone. */
#define BEHIND_MAX 8u

struct read_run {
	pthread_mutex_t lock; /* guards all members below */
	uint64_t cookie;
	unsigned behind; /* reads behind `next` since the last read at `next` */
	uint64_t begin;	 /* offset at which this run of reads began */
	uint64_t next;	 /* offset that a sequential reader reads next */
	uint64_t ahead;	 /* bytes before this offset were fetched */
	uint64_t window; /* bytes to fetch ahead; 0: not sequential so far */
};

struct prefetch {
	struct cache *cache; /* set once */
	struct read_run run[READ_RUNS];
};

struct prefetch *prefetch_new(struct cache *cache)
{
	struct prefetch *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->cache = cache;
	for (unsigned i = 0; i < READ_RUNS; i++)
		lock_init(&p->run[i].lock, RANK_READ_RUN);
	return p;
}

void prefetch_free(struct prefetch *p)
{
	free(p);
}

static void restart(
	struct read_run *r, uint64_t cookie, uint64_t off, uint64_t end)
{
	r->cookie = cookie;
	r->behind = 0;
	r->begin = off;
	r->next = r->ahead = end;
	r->window = 0;
}

/* Does this read advance the run? If a file has several readers, only the one
 * that is farthest counts: bytes that the others read have been fetched
 * already, and must not be fetched again. Another reader takes its place when
 * the farthest one stops reading. */
static bool moves_on(
	struct read_run *r, uint64_t cookie, uint64_t off, uint64_t end)
{
	if (r->cookie != cookie || off > r->next + SLACK_BYTES) {
		restart(r, cookie, off, end);
		return false;
	}
	if (end <= r->next) {
		if (end + SLACK_BYTES <= r->next && ++r->behind >= BEHIND_MAX)
			restart(r, cookie, off, end);
		return false;
	}
	r->behind = 0;
	return true;
}

/* Returns the maximum size of the window. */
static uint64_t limit_bytes(struct cache *cache)
{
	uint64_t us = cache_latency_ns(cache) / NS_PER_US;
	uint64_t bytes = us * READER_BYTES_MS / 1000;

	if (us == 0 || bytes > PREFETCH_WINDOW_MAX_BYTES)
		return PREFETCH_WINDOW_MAX_BYTES;
	return bytes < LIMIT_LEAST_BYTES ? LIMIT_LEAST_BYTES : bytes;
}

/* Note a read that ends at `end`. Returns true and sets the range to fetch
 * ahead, if there is one. */
static bool advance(struct read_run *r, uint64_t limit, uint64_t size,
	uint64_t end, uint64_t *from, uint64_t *to)
{
	r->next = end;
	if (end < r->begin + RUN_MIN_BYTES)
		return false;
	r->window = r->window ? r->window * 2 : WINDOW_FIRST_BYTES;
	if (r->window > limit)
		r->window = limit;
	if (r->ahead < end)
		r->ahead = end;
	*from = r->ahead;
	*to = end + r->window < size ? end + r->window : size;
	if (*to <= *from)
		return false;
	r->ahead = *to;
	return true;
}

void prefetch_note(struct prefetch *p, const struct cache_item *file,
	uint64_t off, size_t len)
{
	struct read_run *r = &p->run[file->cookie % READ_RUNS];
	struct cache_item item = *file;
	uint64_t from = 0, to = 0;
	uint64_t limit = limit_bytes(p->cache);
	bool go;

	pthread_mutex_lock(&r->lock);
	go = moves_on(r, file->cookie, off, off + len) &&
		advance(r, limit, file->version.size_bytes, off + len, &from,
			&to);
	pthread_mutex_unlock(&r->lock);
	while (go && from < to) {
		uint64_t end;

		cache_item_at(p->cache, from, &item);
		end = item.base + item.size < to ? item.base + item.size : to;
		cache_prefetch(p->cache, &item, (size_t)(from - item.base),
			(size_t)(end - from));
		from = end;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of the cache: a cache over a real store and an origin
 * that answers when the test says so, and reads of it.
 */
#ifndef CACHE_FIXTURE_H
#define CACHE_FIXTURE_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/format/key.h"
#include "mount/cache/cache.h"
#include "origin/origin.h"
#include "store_fixture.h"
#include "suite.h"

#define LIMIT ((uint64_t)1 << 20)
#define CHUNK ((uint64_t)256 << 10)
#define STAGING (4 * LIMIT)

/* -- An origin by hand --------------------------------------------------- */

struct hand {
	struct origin o;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t cond;
	struct origin_read *read[4096];
	size_t n, started, files;
};

struct origin_file {
	int unused;
};

static inline uint8_t byte_at(uint64_t off)
{
	return (uint8_t)(off * 131 + (off >> 12));
}

static inline struct origin_file *hand_file_new(
	struct origin *o, const char *path)
{
	struct hand *h = (struct hand *)o;

	(void)path;
	h->files++;
	return calloc(1, sizeof(struct origin_file));
}

static inline void hand_file_free(struct origin *o, struct origin_file *f)
{
	struct hand *h = (struct hand *)o;

	h->files--;
	free(f);
}

static inline void hand_start(struct origin *o, struct origin_request *q)
{
	struct hand *h = (struct hand *)o;
	struct origin_read *r = CONTAINER_OF(q, struct origin_read, req);

	pthread_mutex_lock(&h->lock);
	h->read[h->n++] = r;
	h->started++;
	pthread_cond_broadcast(&h->cond);
	pthread_mutex_unlock(&h->lock);
}

static inline struct origin_read *hand_take(struct hand *h, size_t i)
{
	struct origin_read *r;

	pthread_mutex_lock(&h->lock);
	while (h->n <= i)
		pthread_cond_wait(&h->cond, &h->lock);
	r = h->read[i];
	memmove(&h->read[i], &h->read[i + 1],
		(h->n - i - 1) * sizeof(h->read[0]));
	h->n--;
	pthread_mutex_unlock(&h->lock);
	return r;
}

static inline void answer(struct origin_read *r, int status)
{
	uint8_t *data = malloc(r->len);

	for (size_t i = 0; i < r->len; i++)
		data[i] = byte_at(r->off + i);
	if (status == 0)
		r->data(r, r->off, data, r->len);
	free(data);
	r->req.done(&r->req, status);
}

static inline void answer_all(struct hand *h)
{
	for (;;) {
		pthread_mutex_lock(&h->lock);
		bool none = h->n == 0;
		pthread_mutex_unlock(&h->lock);
		if (none)
			return;
		answer(hand_take(h, 0), 0);
	}
}

static inline void *cancel_main(void *arg)
{
	struct origin_read *r = arg;

	r->req.done(&r->req, -ECANCELED);
	return NULL;
}

static inline void hand_abandon(struct origin *o, struct origin_read *r)
{
	struct hand *h = (struct hand *)o;
	pthread_t t;

	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->n; i++)
		if (h->read[i] == r) {
			h->read[i] = h->read[--h->n];
			ck_assert_int_eq(
				pthread_create(&t, NULL, cancel_main, r), 0);
			(void)pthread_detach(t);
			break;
		}
	pthread_mutex_unlock(&h->lock);
}

static const struct origin_ops hand_ops = {
	.file_new = hand_file_new,
	.file_free = hand_file_free,
	.start = hand_start,
	.abandon = hand_abandon,
};

/* -- One cache ----------------------------------------------------------- */

struct rig {
	struct fixture fix;
	struct hand hand;
	struct timers *timers;
	struct cache *cache;
	struct store_scratch *scratch;
	uint64_t stale; /* the cookie that was last reported as stale */
};

static inline int rig_path(void *arg, uint64_t cookie, char *buf, size_t size)
{
	(void)arg;
	return snprintf(buf, size, "file%llu", (unsigned long long)cookie);
}

static inline void rig_stale(void *arg, uint64_t cookie)
{
	struct rig *g = arg;

	g->stale = cookie;
}

/* The trait request_bytes of the origin that the test answers. */
static size_t rig_request_bytes = CHUNK;

/* The trait asks_whole of that origin. */
static bool rig_asks_whole;

/* The trait depth_first of that origin; 0: the cache's default. */
static unsigned rig_depth_first;

/* The trait memory_share of that origin. */
static unsigned rig_memory_share;

/* The providers that are asked before the origin. */
static struct provider *rig_provider[PROVIDERS_MAX];
static unsigned rig_nproviders;

/* Open a cache over the existing tier, or over a new one. */
static inline void rig_open(struct rig *g, const char *size)
{
	struct cache_config config = {
		.counters = &g->fix.counters,
		.limit_bytes = LIMIT,
		.chunk_bytes = CHUNK,
		.staging_bytes = STAGING,
		.path = rig_path,
		.stale = rig_stale,
		.arg = g,
	};

	fixture_open_one(&g->fix, size);
	g->hand.o.ops = &hand_ops;
	g->hand.o.traits = (struct origin_traits){
		.request_bytes = rig_request_bytes,
		.depth = 6,
		.depth_first = rig_depth_first,
		.memory_share = rig_memory_share,
		.asks_whole = rig_asks_whole,
	};
	pthread_mutex_init(&g->hand.lock, NULL);
	pthread_cond_init(&g->hand.cond, NULL);
	ck_assert_int_eq(timers_new(&g->timers), 0);
	config.store = g->fix.store;
	config.origin = &g->hand.o;
	memcpy(config.provider, rig_provider, sizeof(rig_provider));
	config.nproviders = rig_nproviders;
	config.timers = g->timers;
	config.dataset = key_digest("/data/set");
	ck_assert_int_eq(cache_new(&g->cache, &config, &g->fix.err), 0);
	g->scratch = store_scratch_new();
}

static inline void rig_start(struct rig *g, const char *size)
{
	memset(g, 0, sizeof(*g));
	fixture_init(&g->fix);
	rig_open(g, size);
}

static inline void rig_close(struct rig *g)
{
	cache_stop(g->cache);
	store_scratch_free(g->scratch);
	cache_free(g->cache);
	ck_assert_uint_eq(g->hand.files, 0);
	timers_free(g->timers);
	fixture_close(&g->fix);
}

static inline void rig_stop(struct rig *g)
{
	rig_close(g);
	fixture_release(&g->fix);
}

static inline struct cache_item file_item(
	const struct rig *g, uint64_t cookie, uint64_t size, uint64_t off)
{
	char path[32];
	struct cache_item item = {
		.version = {.size_bytes = size, .mtime_ns = 1},
		.cookie = cookie,
	};

	(void)rig_path(NULL, cookie, path, sizeof(path));
	item.digest = key_digest(path);
	cache_item_at(g->cache, off, &item);
	return item;
}

/* A read and its result. */
struct probe {
	struct cache_read r;
	struct cache_item item;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t cond;
	bool done;
	int status;
	bool right;
};

static inline bool bytes_right(const struct probe *p, const void *data)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < p->r.len; i++)
		if (b[i] != byte_at(p->item.base + p->r.off + i))
			return false;
	return true;
}

static inline void probe_done(
	struct cache_read *r, int status, const void *data)
{
	struct probe *p = CONTAINER_OF(r, struct probe, r);

	pthread_mutex_lock(&p->lock);
	p->done = true;
	p->status = status;
	p->right = status > 0 && bytes_right(p, data);
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
}

static inline void probe_init(
	struct probe *p, struct cache_item item, size_t off, size_t len)
{
	memset(p, 0, sizeof(*p));
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->cond, NULL);
	p->item = item;
	p->r.off = off;
	p->r.len = len;
	p->r.done = probe_done;
}

static inline void probe_run(struct rig *g, struct probe *p)
{
	ssize_t n = cache_read(g->cache, g->scratch, &p->item, &p->r);

	if (n == 0)
		return;
	p->done = true;
	p->status = (int)n;
	p->right = n > 0 && bytes_right(p, p->r.data);
	if (n > 0)
		cache_read_end(g->cache, &p->r);
}

static inline void probe_ask(struct rig *g, struct probe *p,
	struct cache_item item, size_t off, size_t len, bool ahead)
{
	probe_init(p, item, off, len);
	p->r.ahead = ahead;
	probe_run(g, p);
}

/* Start a planned read; `again` of its bytes were read before. */
static inline void probe_again(struct rig *g, struct probe *p,
	struct cache_item item, size_t off, size_t len, size_t again)
{
	probe_init(p, item, off, len);
	p->r.planned = true;
	p->r.again_bytes = again;
	probe_run(g, p);
}

static inline void probe_read(struct rig *g, struct probe *p,
	struct cache_item item, size_t off, size_t len)
{
	probe_ask(g, p, item, off, len, false);
}

static inline void probe_wait(struct probe *p)
{
	pthread_mutex_lock(&p->lock);
	while (!p->done)
		pthread_cond_wait(&p->cond, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static inline uint64_t staged(struct rig *g)
{
	struct cache_status s;

	cache_status(g->cache, &s);
	return s.staging_bytes;
}

/* Wait for a condition on the staging buffer; the test's time-out ends it. */
static inline void wait_staged(struct rig *g, uint64_t bytes)
{
	while (staged(g) != bytes)
		sched_yield();
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The engine: its loops' life, the way in, and the depth. The depth falls by
 * half when the server says that it is busy and recovers by one for each
 * round trip's worth of answers.
 */
#include "web/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "web/loop_impl.h"

/* Fewer in flight than this waste a link without helping the server. */
#define DEPTH_LEAST 8u
#define CONNECT_DEFAULT_MS 3000u
#define STALL_DEFAULT_S 5u
#define SLOW_LEAST_NS (300 * NS_PER_MS)
/* Times that make a percentile worth looking at. */
#define TIMES_LEAST 32u
#define TIMES_HALVE 4096u
/* Hedges are at most this share of requests; a few more at the start. */
#define HEDGE_PCT 3u
#define HEDGES_FREE 2u

/* -- Posts ----------------------------------------------------------------- */

struct loop *engine_pick(struct engine *e)
{
	unsigned turn =
		atomic_fetch_add_explicit(&e->turn, 1, memory_order_relaxed);

	return &e->loops[turn % e->nloops];
}

struct engine *loop_engine(struct loop *l)
{
	return l->e;
}

struct sign_key *loop_sign_key(struct loop *l)
{
	return &l->key;
}

static void loop_wake(struct loop *l)
{
	uint64_t one = 1;

	/* A counter that is full wakes the loop as well. */
	(void)!write(l->event_fd, &one, sizeof(one));
}

void loop_post(struct loop *l, struct post *p)
{
	bool wake = false;

	pthread_mutex_lock(&l->lock);
	if (!p->queued) {
		p->queued = true;
		list_add_tail(&l->posts, &p->node);
		wake = !l->awake;
		l->awake = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (wake)
		loop_wake(l);
}

void loop_unpost(struct loop *l, struct post *p)
{
	LOCK_SCOPE(&l->lock);

	if (p->queued)
		list_del(&p->node);
	p->queued = false;
}

/* -- Depth ----------------------------------------------------------------- */

unsigned engine_depth(const struct engine *e)
{
	return atomic_load_explicit(&e->depth, memory_order_relaxed);
}

uint64_t engine_round_trip_ns(const struct engine *e)
{
	uint64_t ns = atomic_load_explicit(&e->round_ns, memory_order_relaxed);

	return ns ? ns : 10 * NS_PER_MS;
}

bool engine_throttled(struct engine *e)
{
	uint64_t now = clock_now_ns();
	uint64_t cut = atomic_load_explicit(&e->cut_ns, memory_order_relaxed);
	unsigned depth = engine_depth(e);
	unsigned half = depth / 2 > DEPTH_LEAST ? depth / 2 : DEPTH_LEAST;

	if (now - cut < engine_round_trip_ns(e) ||
		!atomic_compare_exchange_strong(&e->cut_ns, &cut, now))
		return false;
	if (half < depth)
		atomic_store_explicit(&e->depth, half, memory_order_relaxed);
	atomic_store_explicit(&e->credit, 0, memory_order_relaxed);
	return half < depth;
}

void engine_answered(struct engine *e)
{
	unsigned depth = engine_depth(e);

	if (depth >= e->config.depth)
		return;
	if (atomic_fetch_add_explicit(&e->credit, 1, memory_order_relaxed) + 1 <
		depth)
		return;
	atomic_store_explicit(&e->credit, 0, memory_order_relaxed);
	atomic_store_explicit(&e->depth, depth + 1, memory_order_relaxed);
}

bool engine_may_hedge(struct engine *e)
{
	uint64_t requests =
		atomic_load_explicit(&e->requests, memory_order_relaxed);
	uint64_t hedges =
		atomic_load_explicit(&e->hedges, memory_order_relaxed);

	/* Somebody who is told to slow down does not ask twice. */
	if (engine_depth(e) < e->config.depth)
		return false;
	if (hedges >= requests * HEDGE_PCT / 100 + HEDGES_FREE)
		return false;
	atomic_fetch_add_explicit(&e->hedges, 1, memory_order_relaxed);
	return true;
}

static unsigned time_bucket(uint64_t ns)
{
	uint64_t us = ns / NS_PER_US + 8;
	unsigned log = 63 - (unsigned)__builtin_clzll(us);
	unsigned bucket = log * 8 + (unsigned)((us >> (log - 3)) & 7);

	return bucket < TIMES_BUCKETS ? bucket : TIMES_BUCKETS - 1;
}

static uint64_t bucket_end_ns(unsigned bucket)
{
	unsigned log = bucket / 8;

	if (log < 3)
		return 0;
	return ((UINT64_C(9) + bucket % 8) << (log - 3)) * NS_PER_US;
}

static void find_slow(struct loop *l)
{
	uint32_t above = l->ntimes / 20;
	unsigned b = TIMES_BUCKETS;
	uint64_t slow;

	while (b > 0 && l->times[b - 1] <= above)
		above -= l->times[--b];
	slow = b > 0 ? 3 * bucket_end_ns(b - 1) : 0;
	l->slow_ns = slow > SLOW_LEAST_NS ? slow : SLOW_LEAST_NS;
}

void loop_note_time(struct loop *l, uint64_t ns)
{
	struct engine *e = l->e;
	uint64_t old = atomic_load_explicit(&e->round_ns, memory_order_relaxed);

	atomic_store_explicit(&e->round_ns, old ? old - old / 8 + ns / 8 : ns,
		memory_order_relaxed);
	l->times[time_bucket(ns)]++;
	l->ntimes++;
	if (l->ntimes % TIMES_LEAST == 0)
		find_slow(l);
	if (l->ntimes < TIMES_HALVE)
		return;
	l->ntimes = 0;
	for (unsigned i = 0; i < TIMES_BUCKETS; i++)
		l->ntimes += l->times[i] /= 2;
}

/* -- Life ------------------------------------------------------------------ */

static int loop_open(struct loop *l)
{
	struct epoll_event event = {.events = EPOLLIN};

	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->epoll_fd < 0 || l->event_fd < 0)
		return -errno;
	event.data.fd = l->event_fd;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->event_fd, &event) < 0)
		return -errno;
	return 0;
}

static void loop_init(struct loop *l, struct engine *e)
{
	l->e = e;
	l->epoll_fd = l->event_fd = -1;
	pthread_mutex_init(&l->lock, NULL);
	list_init(&l->posts);
	list_init(&l->queue);
	list_init(&l->paused);
	list_init(&l->sent);
	list_init(&l->arriving);
	l->slow_ns = 3 * SLOW_LEAST_NS; /* until there are times */
}

static int loop_begin(struct loop *l)
{
	int rc = loop_open(l);

	if (rc < 0)
		return rc;
	rc = pthread_create(&l->thread, NULL, loop_main, l);
	l->started = rc == 0;
	return -rc;
}

static void loop_end(struct loop *l)
{
	if (l->started) {
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		pthread_mutex_unlock(&l->lock);
		loop_wake(l);
		pthread_join(l->thread, NULL);
	}
	if (l->epoll_fd >= 0)
		(void)close(l->epoll_fd); /* nothing is written to it */
	if (l->event_fd >= 0)
		(void)close(l->event_fd); /* as above */
	sign_key_wipe(&l->key);
	bytes_release(&l->text.url);
	bytes_release(&l->text.headers);
	pthread_mutex_destroy(&l->lock);
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->nloops; i++)
		loop_end(&e->loops[i]);
	free(e->ca_file);
	free(e);
}

/* Two parse long listings at the same time. */
static unsigned default_loops(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus < 2)
		return 1;
	return cpus < 16 ? 2 : ENGINE_LOOPS_MAX;
}

static void fill_config(struct engine *e, const struct engine_config *config)
{
	e->config = *config;
	if (!e->config.depth)
		e->config.depth = ENGINE_DEPTH_DEFAULT;
	if (!e->config.connect_ms)
		e->config.connect_ms = CONNECT_DEFAULT_MS;
	if (!e->config.stall_s)
		e->config.stall_s = STALL_DEFAULT_S;
	if (!e->config.loops)
		e->config.loops = default_loops();
	if (e->config.loops > ENGINE_LOOPS_MAX)
		e->config.loops = ENGINE_LOOPS_MAX;
	atomic_store(&e->depth, e->config.depth);
}

int engine_new(struct engine **out, const struct engine_config *config,
	struct error *err)
{
	struct engine *e;
	int rc = 0;

	/* Not thread-safe, but mounts are made by one thread. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return error_set(err, -EIO, "cannot start libcurl");
	e = calloc(1, sizeof(*e));
	if (!e)
		return error_set(err, -ENOMEM, "%m");
	fill_config(e, config);
	if (config->ca_file) {
		e->ca_file = strdup(config->ca_file);
		rc = e->ca_file ? 0 : -ENOMEM;
	}
	while (rc == 0 && e->nloops < e->config.loops) {
		struct loop *l = &e->loops[e->nloops++];

		loop_init(l, e);
		rc = loop_begin(l);
	}
	if (rc < 0) {
		engine_free(e);
		return error_set(err, rc, "cannot start network threads: %m");
	}
	*out = e;
	return 0;
}

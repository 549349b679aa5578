/* SPDX-License-Identifier: MIT */
/*
 * The life of the cache: making it, its timers, and stopping it in an order
 * that answers everybody. Entered by the thread that builds the mount; the
 * timers' callbacks run on theirs.
 */
#include "cache/fill_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "cache/part_impl.h"

static const struct cache_jobs cache_jobs = {
	.dispatch = dispatch_all,
	.run =
		{
			[AFTER_START] = dispatch_run,
			[AFTER_READ] = read_run,
			[AFTER_WARM] = warm_run,
			[AFTER_STALE] = stale_run,
			[AFTER_PUSH] = push_run,
			[AFTER_PUBLISH] = publish_run,
			[AFTER_PLANNED] = planned_run,
		},
};

static void dispatch_fire(struct timer *t)
{
	struct cache *c = CONTAINER_OF(t, struct cache, flight.timer);
	struct after a;

	after_init(&a);
	pthread_mutex_lock(&c->lock);
	engine_run(c, &a);
}

static void drain_fire(struct timer *t)
{
	struct cache *c = CONTAINER_OF(t, struct cache, staging.timer);
	struct after a;

	after_init(&a);
	pthread_mutex_lock(&c->lock);
	fill_expire_drained(c, clock_now_ns());
	engine_run(c, &a);
}

static void last_fire(struct timer *t)
{
	struct cache *c = CONTAINER_OF(t, struct cache, last_timer);

	pthread_mutex_lock(&c->lock);
	c->timers_quiet = true;
	pthread_cond_broadcast(&c->idle_cond);
	pthread_mutex_unlock(&c->lock);
}

static void init_lists(struct cache *c)
{
	for (unsigned i = 0; i < CACHE_BUCKETS; i++)
		list_init(&c->table[i]);
	for (unsigned i = 0; i <= SOURCES_MAX; i++)
		for (unsigned j = 0; j < PRIO_COUNT; j++)
			list_init(&c->queue[i][j]);
	list_init(&c->staging.staged);
	list_init(&c->staging.drained);
	list_init(&c->flight.inflight);
	list_init(&c->flight.slow);
	list_init(&c->plans.done);
	depth_init(&c->flight.depth, c->config.origin->traits.depth);
	if (c->config.origin->traits.depth_first)
		depth_begin(
			&c->flight.depth, c->config.origin->traits.depth_first);
}

/* None of these can fail on Linux. */
static void init_locks(struct cache *c)
{

	(void)pthread_mutex_init(&c->lock, NULL);
	cond_init(&c->idle_cond);
}

int cache_check_sizes(uint64_t limit_bytes, uint64_t chunk_bytes,
	uint64_t staging_bytes, struct error *err)
{
	uint64_t item = limit_bytes > chunk_bytes ? limit_bytes : chunk_bytes;

	if (chunk_bytes < STORE_BLOCK_BYTES ||
		chunk_bytes % STORE_BLOCK_BYTES != 0)
		return error_set(
			err, -EINVAL, "--chunk must be a multiple of 64K");
	if (limit_bytes < STORE_BLOCK_BYTES)
		return error_set(err, -EINVAL, "--limit must be at least 64K");
	if (item > STORE_ITEM_MAX_BYTES)
		return error_set(
			err, -EINVAL, "--limit and --chunk must be at most 1G");
	if (staging_bytes < 4 * item)
		return error_set(err, -EINVAL,
			"--staging must be at least four times --limit and "
			"--chunk, so that four items fit");
	return 0;
}

/* Whole pages, and one at least. */
static size_t request_bytes(const struct origin *o)
{
	size_t pages = o->traits.request_bytes / FILL_PAGE_BYTES;

	return (pages ? pages : 1) * FILL_PAGE_BYTES;
}

int cache_new(struct cache **out, const struct cache_config *config,
	struct error *err)
{
	struct cache *c;
	int rc = cache_check_sizes(config->limit_bytes, config->chunk_bytes,
		config->staging_bytes, err);

	if (rc < 0)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(err, -ENOMEM, "cannot make the cache: %m");
	c->config = *config;
	c->jobs = &cache_jobs;
	c->request_bytes = request_bytes(config->origin);
	init_locks(c);
	init_lists(c);
	sources_init(c);
	c->flight.timer.fire = dispatch_fire;
	c->staging.timer.fire = drain_fire;
	c->last_timer.fire = last_fire;
	rc = publish_start(c, err);
	if (rc < 0) {
		cache_stop(c);
		cache_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

/* Fills that can become a part stay until part_keep_all(). */
static void halt(struct cache *c, struct fill *f, int status, struct after *a)
{
	if (part_is_possible(f))
		fill_halt(c, f, status, a);
	else
		fill_fail(c, f, status, a);
}

/* Callbacks come from elsewhere, never from inside origin_read_abandon(). */
static void abandon_all(struct cache *c)
{
	ASSERT_HELD(&c->lock);
	while (c->flight.nstarting > 0)
		pthread_cond_wait(&c->idle_cond, &c->lock);
	LIST_FOREACH(l, &c->flight.inflight)
		origin_read_abandon(c->config.origin,
			&CONTAINER_OF(l, struct fetch, link)->r);
	LIST_FOREACH(l, &c->flight.slow)
		origin_read_abandon(c->config.origin,
			&CONTAINER_OF(l, struct fetch, link)->r);
	sources_abandon(c);
	while (c->flight.ninflight + c->flight.nslow + c->asked.n +
			c->asked.npushing >
		0)
		pthread_cond_wait(&c->idle_cond, &c->lock);
}

static void quiet_timers(struct cache *c)
{
	ASSERT_HELD(&c->lock);
	(void)timer_cancel(c->config.timers, &c->flight.timer);
	(void)timer_cancel(c->config.timers, &c->staging.timer);
	sources_quiet(c);
	/* Callbacks run one after another: when the last has, all have. */
	if (timer_set(c->config.timers, &c->last_timer, 0) < 0)
		return;
	while (!c->timers_quiet)
		pthread_cond_wait(&c->idle_cond, &c->lock);
}

void cache_stop(struct cache *c)
{
	struct after a;

	after_init(&a);
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	fill_end_all(c, &a, halt);
	engine_run(c, &a);
	pthread_mutex_lock(&c->lock);
	abandon_all(c);
	quiet_timers(c);
	/* Fills being loaded or written are considered then, too. */
	publish_wait(c);
	part_keep_all(c);
	pthread_mutex_unlock(&c->lock);
	publish_stop(c);
}

void cache_free(struct cache *c)
{
	struct after a;

	if (!c)
		return;
	after_init(&a);
	pthread_mutex_lock(&c->lock);
	fill_end_all(c, &a, fill_fail);
	engine_run(c, &a);
	(void)pthread_cond_destroy(&c->idle_cond); /* nobody is left */
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

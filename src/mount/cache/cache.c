/* SPDX-License-Identifier: MIT */
/*
 * Creates and stops the cache, and handles its timers. The order of the steps
 * in cache_stop() makes sure that every read is answered. Called by the thread
 * that builds the mount; callbacks of timers run on the thread of the timers.
 */
#include "mount/cache/cache_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "mount/cache/fill_part_impl.h"

static void last_fire(struct timer *t)
{
	struct cache *c = CONTAINER_OF(t, struct cache, last_timer);

	jobs_lock(c);
	c->timers_quiet = true;
	jobs_wake(c);
	jobs_unlock(c);
}

int cache_check_sizes(uint64_t limit_bytes, uint64_t chunk_bytes,
	uint64_t staging_bytes, struct error *err)
{
	uint64_t item = limit_bytes > chunk_bytes ? limit_bytes : chunk_bytes;

	if (chunk_bytes < ENTRY_BLOCK_BYTES ||
		chunk_bytes % ENTRY_BLOCK_BYTES != 0)
		return error_set(
			err, -EINVAL, "--chunk must be a multiple of 64K");
	if (limit_bytes < ENTRY_BLOCK_BYTES)
		return error_set(err, -EINVAL, "--limit must be at least 64K");
	if (item > ENTRY_ITEM_MAX_BYTES)
		return error_set(
			err, -EINVAL, "--limit and --chunk must be at most 1G");
	if (staging_bytes < 4 * item)
		return error_set(err, -EINVAL,
			"--staging must be at least four times the larger of "
			"--limit and --chunk");
	return 0;
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
	jobs_init(c);
	fill_table_init(c);
	room_init(c);
	list_init(&c->readers.waiting);
	providers_init(c);
	dispatch_init(c);
	timer_init(&c->last_timer, last_fire);
	rc = publish_start(c, err);
	if (rc < 0) {
		cache_stop(c);
		cache_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

/* End a fill of a cache that stops. A fill with pages that a tier may keep as a
 * part stays until part_keep_all(). */
static void halt(struct cache *c, struct fill *f, int status, struct after *a)
{
	if (part_is_possible(f))
		fill_halt(c, f, status, a);
	else
		fill_fail(c, f, status, a);
}

/* Give up all requests. First wait until every request has been handed to its
 * provider: only then can the provider give it up. */
static void abandon_all(struct cache *c)
{
	struct after a;

	jobs_enter(c, &a);
	while (jobs_is_starting(c))
		jobs_wait(c);
	providers_abandon(c, &a);
	jobs_run(c, &a);
}

static void quiet_timers(struct cache *c)
{
	ASSERT_INSIDE(c);
	dispatch_quiet(c);
	room_quiet(c);
	providers_quiet(c);
	/* Callbacks of timers run one at a time. So when the callback of
	 * last_timer has run, no other callback can be running. */
	timer_set(cache_config(c)->timers, &c->last_timer, 0);
	while (!c->timers_quiet)
		jobs_wait(c);
}

void cache_stop(struct cache *c)
{
	struct after a;

	jobs_enter(c, &a);
	jobs_stop(c);
	fill_end_all(c, &a, halt);
	jobs_run(c, &a);
	abandon_all(c);
	jobs_lock(c);
	while (providers_out(c) > 0)
		jobs_wait(c);
	quiet_timers(c);
	/* Wait until no fill is being read or written. Then part_keep_all()
	 * finds all fills that could become parts. */
	publish_wait(c);
	part_keep_all(c);
	jobs_unlock(c);
	publish_stop(c);
}

void cache_free(struct cache *c)
{
	struct after a;

	if (!c)
		return;
	jobs_enter(c, &a);
	fill_end_all(c, &a, fill_fail);
	jobs_run(c, &a);
	jobs_release(c);
	free(c);
}

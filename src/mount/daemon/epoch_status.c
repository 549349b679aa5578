/* SPDX-License-Identifier: MIT */
/* Connects epochs.c with a mount: passes the misses, counters and tiers of the
 * mount to it, and adds its results to the status. Called on each miss, with
 * the cache's lock held, and by control connections. */
#include "mount/daemon/mount_impl.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/magic.h"

static uint64_t counted(_Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void mount_look(void *arg, struct epochs_look *now)
{
	struct mount_epochs *e = OBJECT(mount_epochs, arg);

	*now = (struct epochs_look){.time_ns = clock_now_ns(),
		.ready = store_ready(e->store),
		.hit_bytes = counted(&e->counters->hit_bytes) +
			counted(&e->counters->direct_hit_bytes),
		.miss_bytes = counted(&e->counters->miss_bytes),
		.origin_bytes = counted(&e->counters->origin_bytes),
		.starved_us = counted(&e->counters->starved_us)};
	for (size_t i = 0; i < store_tiers(e->store); i++) {
		struct tier_status s;

		store_tier_status(e->store, i, &s);
		now->resident_bytes += s.resident_bytes;
	}
}

static void mount_missed(void *arg, const struct cache_miss *miss)
{
	const struct mount_epochs *e = OBJECT(mount_epochs, arg);

	epochs_missed(e->epochs,
		&(struct epochs_miss){.key = miss->key.lo,
			.bytes = miss->size_bytes,
			.planned_bytes = miss->planned_bytes,
			.time_ns = clock_now_ns()});
}

int mount_count_epochs(struct mount_epochs *e, struct cache_config *config,
	uint64_t pages_bytes)
{
	struct epochs_config epochs = {
		.look = mount_look,
		.arg = e,
		.pages_bytes = pages_bytes,
	};

	MAGIC_BEGIN(e, mount_epochs);
	e->store = config->store;
	e->counters = config->counters;
	e->epochs = epochs_new(&epochs);
	config->missed = mount_missed;
	config->missed_arg = e;
	return e->epochs ? 0 : -ENOMEM;
}

static void add_known(json_t *o, const char *name, uint64_t value, bool known)
{
	if (known)
		ctl_set_number(o, name, value);
}

static void add_pct(json_t *o, const char *name, int pct)
{
	add_known(o, name, (uint64_t)pct, pct != EPOCHS_UNKNOWN);
}

void status_add_epoch(json_t *o, struct mount_epochs *e, struct cache *cache,
	uint64_t dataset_bytes)
{
	struct epochs_look now;
	struct cache_status s;
	struct epochs_news n;
	uint64_t delivered;
	bool timed;

	mount_look(e, &now);
	now.dataset_bytes = dataset_bytes;
	cache_status(cache, &s);
	now.planned_bytes = s.planned_bytes;
	if (epochs_delivered(e->epochs, &now, &delivered))
		add_known(o, "epoch_origin_bytes", delivered, true);
	if (!epochs_tell(e->epochs, &now, &n))
		return;
	timed = n.epoch_ms > 0;
	add_known(o, "epoch", n.epoch, n.epoch > 0);
	add_pct(o, "epoch_done_pct", n.done_pct);
	add_pct(o, "epoch_expected_hits_pct", n.expected_pct);
	add_pct(o, "epoch_hits_pct", n.hits_pct);
	add_pct(o, "epoch_waited_pct", n.waited_pct);
	add_known(o, "epoch_ms", n.epoch_ms, timed);
	add_known(o, "larger_cache_bytes", n.larger.cache_bytes, timed);
	add_known(o, "larger_cache_least_ms", n.larger.least_ms, timed);
	add_known(o, "larger_cache_most_ms", n.larger.most_ms, timed);
	add_known(o, "whole_cache_bytes", n.whole.cache_bytes, timed);
	add_known(o, "whole_cache_least_ms", n.whole.least_ms, timed);
	add_known(o, "whole_cache_most_ms", n.whole.most_ms, timed);
}

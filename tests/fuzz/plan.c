/* SPDX-License-Identifier: MIT */
/* Fuzz target: commands about plans and keys, which the daemon's own functions
 * run over a small dataset. After the connection has ended, nothing of its plan
 * may remain. The threads of plans, cache and origin run at the same time. */
#include <sched.h>
#include <string.h>

#include "common/base/clock.h"
#include "mount/daemon/mount_impl.h"
#include "peer.h"

#define NAMES 8u

static struct counters counters;
static struct store *store;
static struct timers *timers;
static struct origin *origin;
static struct loaders of = {.magic = MAGIC_loaders, .counters = &counters};

static int file_path(void *arg, uint64_t cookie, char *buf, size_t size)
{
	(void)arg;
	return manifest_path(of.manifest, (node_id)cookie, buf, size);
}

static void file_stale(void *arg, uint64_t cookie)
{
	(void)arg, (void)cookie;
}

static bool planned_file(void *arg, uint64_t cookie, struct cache_item *file)
{
	struct node_info info;

	(void)arg;
	FUZZ_MUST(manifest_get(of.manifest, (node_id)cookie, &info) == 0);
	FUZZ_MUST(info.attr.kind == KIND_FILE);
	*file = (struct cache_item){
		.digest = info.digest,
		.version = info.attr.version,
		.cookie = cookie,
	};
	return true;
}

/* Add files a to h: a directory, an empty file, a file of several items, and
 * small files. The source has none of them, so each fetch fails. */
static void fill_manifest(void)
{
	char name[2] = "a";

	FUZZ_MUST(manifest_new(&of.manifest, "/data/set") == 0);
	for (unsigned i = 0; i < NAMES; i++, name[0]++) {
		struct file_entry e = {
			.name = name,
			.attr = {.kind = i == 0 ? KIND_DIR : KIND_FILE,
				.version = {.size_bytes = i == 1 ? 0
						: i == 2	 ? 300000
								 : 100 * i,
					.mtime_ns = 1}},
		};

		FUZZ_MUST(manifest_put(of.manifest, NODE_ROOT, &e, 0, false,
				  NULL, NULL, NULL) == 0);
	}
}

static void close_all(void)
{
	cache_stop(of.cache);
	plans_free(of.plans);
	cache_free(of.cache);
	store_close(store);
	origin_free(origin);
	timers_free(timers);
}

static void open_all(void)
{
	static char path[64];
	struct store_config in = {.dataset = "/data/set", .ntiers = 1};
	struct cache_config cache = {
		.limit_bytes = 128 << 10,
		.chunk_bytes = 64 << 10,
		.staging_bytes = 1 << 20,
		.path = file_path,
		.stale = file_stale,
	};
	struct plans_config plans = {.file = planned_file};
	struct error err;

	(void)fuzz_dir(path);
	in.tiers[0] = (struct tier_config){.dir = path, .size = "1M"};
	fill_manifest();
	FUZZ_MUST(store_open(&store, &in, &counters, &err) == 0);
	FUZZ_MUST(timers_new(&timers) == 0);
	FUZZ_MUST(origin_synthetic_new(&origin, "files=1,size=1", &err) == 0);
	cache.store = store;
	cache.origin = origin;
	cache.timers = timers;
	cache.counters = &counters;
	FUZZ_MUST(cache_new(&of.cache, &cache, &err) == 0);
	plans.cache = of.cache;
	plans.counters = &counters;
	FUZZ_MUST(plans_new(&of.plans, &plans) == 0);
	/* close_all() must run before fuzz_dir() removes the directory */
	(void)atexit(close_all);
}

/* All commands except plan-follow, which waits for readers. */
static const struct ctl_command commands[] = {
	{"keys", command_keys, &of},
	{"plan", command_plan, &of},
	{"plan-add", command_plan_add, &of},
	{"plan-progress", command_plan_progress, &of},
	{"plan-status", command_plan_status, &of},
	{"plan-drop", command_plan_drop, &of},
	{NULL, NULL, NULL},
};

static void one(const uint8_t *data, size_t size)
{
	struct plans_status plans;
	struct cache_status cache;

	if (!store)
		open_all();
	fuzz_peer(commands, data, size);
	plans_status(of.plans, &plans);
	FUZZ_MUST(plans.plans == 0 && plans.positions == 0);
	for (;;) {
		cache_status(of.cache, &cache);
		if (cache.planned_bytes == 0)
			break;
		(void)sched_yield();
	}
	FUZZ_MUST(cache.staging_peak_bytes <= 1 << 20);
}

static size_t seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"{\"cmd\":\"plan\",\"batch\":4,\"echo\":\"2.5\"}\n"
		"{\"cmd\":\"plan-add\",\"paths\":[\"c\",\"d\",\"e\",\"f\"]}\n"
		"{\"cmd\":\"plan-status\"}\n{\"cmd\":\"plan-drop\"}\n",
		"{\"cmd\":\"plan\",\"echo\":\"5/2\",\"echo_max\":4,"
		"\"window\":64,\"fresh\":7,\"slack\":2,\"step_ms\":1.5}\n"
		"{\"cmd\":\"plan-add\",\"epoch\":3,\"paths\":[\"a\",\"b\","
		"\"c\",\"c\",\"./g\",\"x\",{\"hex\":\"64\"},7]}\n"
		"{\"cmd\":\"plan-progress\",\"position\":1}\n"
		"{\"cmd\":\"plan-progress\",\"step\":3,\"echo\":\"3\"}\n"
		"{\"cmd\":\"plan-add\",\"epoch\":4,\"paths\":[\"h\"]}\n",
		"{\"cmd\":\"keys\",\"paths\":[\"a\",\"b\",\"c\",\"d\",\"..\","
		"\"/\"]}\n{\"cmd\":\"plan-status\"}\n"
		"{\"cmd\":\"plan\",\"batch\":16777216,\"echo\":64}\n"
		"{\"cmd\":\"plan\"}\n{\"cmd\":\"plan-add\",\"pa",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_plan = {"plan", one, seed};

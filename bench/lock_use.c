/* SPDX-License-Identifier: MIT */
/*
 * The cost of a missed file in locks: how often cache.lock and plans.lock are
 * taken for it, how long they are held, and the rate of files at which each
 * would be the limit. Files come from a synthetic origin through a real cache
 * into a tier, or through memory where the tier is full; readers are threads of
 * this program. The rate of this machine does not matter, because only the time
 * is measured for which no other thread can have the lock. Exits with 1 if the
 * limit of a lock is below LOCK_BAR_PER_S.
 *
 *   lock-use DIR [FILES [BYTES [READERS]]]
 *
 * DIR must not exist and is removed; give one in memory. Defaults: 20,000 files
 * of 110,000 bytes, 4 readers.
 */
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/format/key.h"
#include "mount/cache/cache_impl.h"
#include "lock_meter.h"
#include "origin/origin.h"
#include "mount/plan/plan_impl.h"

#define READERS_MAX 64u
#define LIMIT ((uint64_t)16 << 20)
#define STAGING ((uint64_t)256 << 20)

struct bench {
	const char *dir;
	uint64_t files, bytes;
	unsigned readers;
	struct counters counters;
	struct store *store;
	struct origin *origin;
	struct timers *timers;
	struct cache *cache;
	struct plans *plans;
	_Atomic uint64_t next; /* number of the next file; relaxed */
};

static void die(const char *what)
{
	fprintf(stderr, "lock-use: %s\n", what);
	exit(EXIT_FAILURE);
}

static int file_path(void *arg, uint64_t cookie, char *buf, size_t size)
{
	(void)arg;
	return snprintf(buf, size, "d0000/f%06" PRIu64 ".bin", cookie);
}

static void ignore_stale(void *arg, uint64_t cookie)
{
	(void)arg;
	(void)cookie;
}

static bool describe_file(void *arg, uint64_t cookie, struct cache_item *item)
{
	const struct bench *b = arg;
	char path[64];

	(void)file_path(NULL, cookie, path, sizeof(path));
	*item = (struct cache_item){
		.digest = key_digest(path),
		.version = {.size_bytes = b->bytes,
			.mtime_ns = INT64_C(1000000000) * NS_PER_S},
		.cookie = cookie,
		.size = b->bytes,
	};
	return true;
}

/* -- Readers --------------------------------------------------------------- */

struct waited_read {
	struct cache_read r;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t cond;
	bool done;
	int status;
};

static void read_done(struct cache_read *r, int status, const void *data)
{
	struct waited_read *w = CONTAINER_OF(r, struct waited_read, r);

	(void)data;
	pthread_mutex_lock(&w->lock);
	w->done = true;
	w->status = status;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

static void read_one(struct bench *b, struct store_scratch *s,
	struct waited_read *w, uint64_t cookie)
{
	struct cache_item item;
	ssize_t n;

	(void)describe_file(b, cookie, &item);
	w->done = false;
	w->r = (struct cache_read){.len = b->bytes, .done = read_done};
	w->r.planned =
		plans_note(b->plans, &item, 0, b->bytes, 0, NULL) != PLANS_NONE;
	n = cache_read(b->cache, s, &item, &w->r);
	if (n > 0)
		cache_read_end(b->cache, &w->r);
	if (n < 0)
		die("a read failed");
	if (n > 0)
		return;
	pthread_mutex_lock(&w->lock);
	while (!w->done)
		pthread_cond_wait(&w->cond, &w->lock);
	pthread_mutex_unlock(&w->lock);
	if (w->status < 0)
		die("a read failed");
}

static void *reader_main(void *arg)
{
	struct bench *b = arg;
	struct store_scratch *s = store_scratch_new();
	struct waited_read w = {.lock = PTHREAD_MUTEX_INITIALIZER,
		.cond = PTHREAD_COND_INITIALIZER};

	if (!s)
		die("out of memory");
	for (;;) {
		uint64_t i = atomic_fetch_add_explicit(
			&b->next, 1, memory_order_relaxed);

		if (i >= b->files)
			break;
		read_one(b, s, &w, i);
	}
	store_scratch_free(s);
	return NULL;
}

static void read_all(struct bench *b)
{
	pthread_t thread[READERS_MAX];

	for (unsigned i = 0; i < b->readers; i++)
		if (pthread_create(&thread[i], NULL, reader_main, b))
			die("cannot start a thread");
	for (unsigned i = 0; i < b->readers; i++)
		/* cannot fail: the thread is joinable */
		(void)pthread_join(thread[i], NULL);
}

/* Configure malloc() as the daemon does. */
static void set_malloc(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 32 << 20);
	(void)mallopt(M_ARENA_MAX, 2);
}

/* -- Runs ------------------------------------------------------------------ */

static void open_parts(struct bench *b, const char *size)
{
	struct store_config store = {
		.dataset = "bench", .ntiers = 1, .verify = true};
	struct cache_config cache = {.counters = &b->counters,
		.limit_bytes = LIMIT,
		.chunk_bytes = LIMIT,
		.staging_bytes = STAGING,
		.path = file_path,
		.stale = ignore_stale};
	struct plans_config plans = {.file = describe_file, .arg = b};
	char spec[80];
	struct error err;

	(void)snprintf(spec, sizeof(spec),
		"files=%" PRIu64 ",size=%" PRIu64 ",dirs=1", b->files,
		b->bytes);
	store.tiers[0] = (struct tier_config){.dir = b->dir, .size = size};
	if (store_open(&b->store, &store, &b->counters, &err) ||
		origin_synthetic_new(&b->origin, spec, &err))
		die(err.msg);
	store_wait_ready(b->store);
	if (timers_new(&b->timers))
		die("cannot start a thread");
	cache.store = b->store;
	cache.origin = b->origin;
	cache.timers = b->timers;
	cache.dataset = key_digest("bench");
	if (cache_new(&b->cache, &cache, &err))
		die(err.msg);
	plans.cache = b->cache;
	plans.counters = &b->counters;
	if (plans_new(&b->plans, &plans))
		die("out of memory");
}

static void close_parts(struct bench *b)
{
	struct error err;
	uint64_t removed;

	plans_free(b->plans);
	cache_stop(b->cache);
	cache_free(b->cache);
	(void)origin_free(b->origin); /* cannot fail: no request hangs */
	timers_free(b->timers);
	store_close(b->store);
	if (store_clear_dir(b->dir, &removed, &err))
		die(err.msg);
	/* if the directory cannot be removed, it stays and shows the failure */
	(void)rmdir(b->dir);
}

static struct plan *open_plan(struct bench *b)
{
	struct plan_params params = {.batch = 64};
	struct plan *plan;
	struct error err;

	if (plan_open(b->plans, &params, &plan, &err))
		die(err.msg);
	for (uint64_t i = 0; i < b->files; i++)
		if (plan_add(plan, 1, i))
			die("cannot add to the plan");
	return plan;
}

/* Measure one case and print the locks. Returns true if the limit of each lock
 * is high enough. */
static bool run(struct bench *b, const char *name, const char *tier, bool ahead)
{
	struct plan *plan = NULL;
	uint64_t begin_ns;
	int cache, plans;
	bool pass;

	open_parts(b, tier);
	lock_meter_forget();
	cache = lock_meter_watch(&b->cache->jobs.lock);
	plans = lock_meter_watch(&b->plans->lock);
	b->next = 0;
	begin_ns = clock_now_ns();
	if (ahead)
		plan = open_plan(b);
	read_all(b);
	cache_settle(b->cache, UINT64_MAX / 4);
	if (plan)
		plan_close(plan);
	begin_ns = clock_now_ns() - begin_ns;
	printf("%s: %" PRIu64 " files, %.0f files/s here\n", name, b->files,
		(double)b->files * NS_PER_S / (double)begin_ns);
	close_parts(b);
	pass = lock_meter_print(cache, "cache.lock", b->files, "file");
	if (ahead && !lock_meter_print(plans, "plans.lock", b->files, "file"))
		pass = false;
	return pass;
}

static uint64_t number(const char *text, uint64_t most)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end || n == 0 || n > most)
		die("a number is out of range");
	return n;
}

int main(int argc, char **argv)
{
	static struct bench b = {.files = 20000, .bytes = 110000, .readers = 4};
	bool pass;

	if (argc < 2 || argc > 5)
		die("usage: lock-use DIR [FILES [BYTES [READERS]]]");
	b.dir = argv[1];
	if (argc > 2)
		b.files = number(argv[2], 1000000);
	if (argc > 3)
		b.bytes = number(argv[3], CACHE_READ_MAX_BYTES);
	if (argc > 4)
		b.readers = (unsigned)number(argv[4], READERS_MAX);
	set_malloc();
	pass = run(&b, "passed through", "1M", false);
	pass &= run(&b, "admitted", "90%", false);
	pass &= run(&b, "planned, passed through", "1M", true);
	pass &= run(&b, "planned, admitted", "90%", true);
	return pass ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: MIT */
/*
 * The cache over a real store and an origin that answers when the test says
 * so: what is asked of the origin, who is answered when, what stays.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/key.h"
#include "cache/cache.h"
#include "origin/origin.h"
#include "store_fixture.h"

#define LIMIT ((uint64_t)1 << 20)
#define CHUNK ((uint64_t)256 << 10)
#define STAGING (4 * LIMIT)

/* -- An origin by hand --------------------------------------------------- */

struct hand {
	struct origin o;
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t cond;
	struct origin_read *read[4096];
	size_t n, started, files;
};

struct origin_file {
	int unused;
};

static uint8_t byte_at(uint64_t off)
{
	return (uint8_t)(off * 131 + (off >> 12));
}

static struct origin_file *hand_file_new(struct origin *o, const char *path)
{
	struct hand *h = (struct hand *)o;

	(void)path;
	h->files++;
	return calloc(1, sizeof(struct origin_file));
}

static void hand_file_free(struct origin *o, struct origin_file *f)
{
	struct hand *h = (struct hand *)o;

	h->files--;
	free(f);
}

static void hand_read(struct origin *o, struct origin_read *r)
{
	struct hand *h = (struct hand *)o;

	pthread_mutex_lock(&h->lock);
	h->read[h->n++] = r;
	h->started++;
	pthread_cond_broadcast(&h->cond);
	pthread_mutex_unlock(&h->lock);
}

static struct origin_read *hand_take(struct hand *h, size_t i)
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

static void answer(struct origin_read *r, int status)
{
	uint8_t *data = malloc(r->len);

	for (size_t i = 0; i < r->len; i++)
		data[i] = byte_at(r->off + i);
	r->done(r, status < 0 ? status : (int)r->len, data);
	free(data);
}

static void answer_all(struct hand *h)
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

static void *cancel_main(void *arg)
{
	struct origin_read *r = arg;

	r->done(r, -ECANCELED, NULL);
	return NULL;
}

static void hand_abandon(struct origin *o, struct origin_read *r)
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
	.name = "hand",
	.file_new = hand_file_new,
	.file_free = hand_file_free,
	.read = hand_read,
	.abandon = hand_abandon,
};

/* -- One cache ----------------------------------------------------------- */

struct rig {
	struct fixture fix;
	struct hand hand;
	struct timers *timers;
	struct cache *cache;
	struct cache_scratch *scratch;
	uint64_t stale; /* the last cookie that was reported */
};

static int rig_path(void *arg, uint64_t cookie, char *buf, size_t size)
{
	(void)arg;
	return snprintf(buf, size, "file%llu", (unsigned long long)cookie);
}

static void rig_stale(void *arg, uint64_t cookie)
{
	struct rig *g = arg;

	g->stale = cookie;
}

static void rig_start(struct rig *g, const char *size)
{
	struct cache_config config = {
		.counters = &g->fix.counters,
		.limit_bytes = LIMIT,
		.chunk_bytes = CHUNK,
		.staging_bytes = STAGING,
		.depth = 8,
		.path = rig_path,
		.stale = rig_stale,
		.arg = g,
	};

	memset(g, 0, sizeof(*g));
	fixture_init(&g->fix);
	fixture_open_one(&g->fix, size);
	g->hand.o.ops = &hand_ops;
	pthread_mutex_init(&g->hand.lock, NULL);
	pthread_cond_init(&g->hand.cond, NULL);
	ck_assert_int_eq(timers_new(&g->timers), 0);
	config.store = g->fix.store;
	config.origin = &g->hand.o;
	config.timers = g->timers;
	config.dataset = key_digest("/data/set");
	ck_assert_int_eq(cache_new(&g->cache, &config, &g->fix.err), 0);
	g->scratch = cache_scratch_new();
}

static void rig_stop(struct rig *g)
{
	cache_stop(g->cache);
	cache_scratch_free(g->scratch);
	cache_free(g->cache);
	ck_assert_uint_eq(g->hand.files, 0);
	timers_free(g->timers);
	fixture_release(&g->fix);
}

static struct cache_item file_item(
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

/* A read and what became of it. */
struct probe {
	struct cache_read r;
	struct cache_item item;
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t cond;
	bool done;
	int status;
	bool right;
};

static bool bytes_right(const struct probe *p, const void *data)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < p->r.len; i++)
		if (b[i] != byte_at(p->item.base + p->r.off + i))
			return false;
	return true;
}

static void probe_done(struct cache_read *r, int status, const void *data)
{
	struct probe *p = CONTAINER_OF(r, struct probe, r);

	pthread_mutex_lock(&p->lock);
	p->done = true;
	p->status = status;
	p->right = status > 0 && bytes_right(p, data);
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
}

static void probe_read(struct rig *g, struct probe *p, struct cache_item item,
	size_t off, size_t len)
{
	ssize_t n;

	memset(p, 0, sizeof(*p));
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->cond, NULL);
	p->item = item;
	p->r.off = off;
	p->r.len = len;
	p->r.done = probe_done;
	n = cache_read(g->cache, g->scratch, &item, &p->r);
	if (n == 0)
		return;
	p->done = true;
	p->status = (int)n;
	p->right = n > 0 && bytes_right(p, p->r.data);
	if (n > 0)
		cache_read_end(g->cache, &p->r);
}

static void probe_wait(struct probe *p)
{
	pthread_mutex_lock(&p->lock);
	while (!p->done)
		pthread_cond_wait(&p->cond, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static uint64_t staged(struct rig *g)
{
	struct cache_status s;

	cache_status(g->cache, &s);
	return s.staging_bytes;
}

/* Wait for a condition on the staging buffer; the test's time-out ends it. */
static void wait_staged(struct rig *g, uint64_t bytes)
{
	while (staged(g) != bytes)
		sched_yield();
}

/* -- Behaviour ----------------------------------------------------------- */

START_TEST(test_many_first_readers_cause_one_origin_read_of_each_byte)
{
	static struct probe p[64];
	struct cache_item item;
	struct rig g;

	rig_start(&g, "16M");
	item = file_item(&g, 7, 700000, 0);
	for (int i = 0; i < 64; i++)
		probe_read(&g, &p[i], item, 0, 700000);
	answer_all(&g.hand);
	for (int i = 0; i < 64; i++) {
		probe_wait(&p[i]);
		ck_assert_int_eq(p[i].status, 700000);
		ck_assert(p[i].right);
	}
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 700000);
	ck_assert_uint_eq(g.fix.counters.misses, 64);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_reader_gets_its_bytes_before_the_item_is_complete)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, LIMIT, 0), 4096, 1000);
	ck_assert(!p.done);
	answer(hand_take(&g.hand, 0), 0);
	probe_wait(&p);
	ck_assert(p.right);
	ck_assert_uint_lt(g.fix.counters.origin_bytes, LIMIT);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_published_item_is_a_hit_without_the_origin)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, 100000, 0), 0, 100000);
	answer_all(&g.hand);
	probe_wait(&p);
	cache_settle(g.cache, 10 * NS_PER_S);
	probe_read(&g, &p, file_item(&g, 1, 100000, 0), 0, 100000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(g.fix.counters.hits, 1);
	ck_assert_uint_eq(g.fix.counters.admitted, 1);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 100000);
	wait_staged(&g, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_chunk_fetches_only_the_pages_that_are_read)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, 64 * LIMIT, 5 * CHUNK + 10000),
		10000, 20000);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	/* Pages 2 to 7 of the chunk. */
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 6 * 4096);
	/* The rest completes it, and nothing is fetched twice. */
	probe_read(&g, &p, p.item, 0, CHUNK);
	answer_all(&g.hand);
	probe_wait(&p);
	ck_assert(p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, CHUNK);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert(cache_resident(g.cache, &p.item));
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_failed_fetch_is_told_to_its_readers_and_tried_anew)
{
	struct probe p, other;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 1, 1000, 0), 0, 1000);
	probe_read(&g, &other, file_item(&g, 2, 1000, 0), 0, 1000);
	answer(hand_take(&g.hand, 0), -EIO);
	ck_assert_int_eq(p.status, -EIO);
	ck_assert(!other.done);
	answer_all(&g.hand);
	ck_assert(other.right);
	probe_read(&g, &p, p.item, 0, 1000);
	answer_all(&g.hand);
	ck_assert(p.right);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_stale_version_is_reported_and_never_cached)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	probe_read(&g, &p, file_item(&g, 42, 1000, 0), 0, 1000);
	answer(hand_take(&g.hand, 0), -ESTALE);
	ck_assert_int_eq(p.status, -ESTALE);
	ck_assert_uint_eq(g.stale, 42);
	ck_assert(!cache_resident(g.cache, &p.item));
	wait_staged(&g, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_does_not_fit_passes_through_and_leaves_when_served)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_start(&g, "128K");
	item = file_item(&g, 1, 500000, 0);
	probe_read(&g, &p, item, 0, 250000);
	answer_all(&g.hand);
	ck_assert(p.right);
	ck_assert_uint_eq(staged(&g), 500000);
	probe_read(&g, &p, item, 250000, 250000);
	ck_assert(p.done && p.right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 500000);
	ck_assert_uint_eq(g.fix.counters.passed_through, 1);
	wait_staged(&g, 0);
	ck_assert_uint_eq(g.fix.counters.staging_dropped, 0);
	/* The next epoch finds nothing of it. */
	probe_read(&g, &p, item, 0, 500000);
	answer_all(&g.hand);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 1000000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_staging_never_passes_its_bound_and_the_oldest_goes_first)
{
	static struct probe p[16];
	struct cache_status s;
	struct rig g;

	rig_start(&g, "128K");
	for (uint64_t i = 0; i < 16; i++) {
		/* Half of each is read: none is drained. */
		probe_read(&g, &p[i], file_item(&g, i, LIMIT, 0), 0, LIMIT / 2);
		answer_all(&g.hand);
		ck_assert(p[i].right);
		cache_status(g.cache, &s);
		ck_assert_uint_le(s.staging_bytes, STAGING);
	}
	ck_assert_uint_eq(s.staging_peak_bytes, STAGING);
	ck_assert_uint_eq(g.fix.counters.staging_dropped, 12);
	/* The youngest is there, the oldest is not. */
	probe_read(&g, &p[15], p[15].item, LIMIT / 2, LIMIT / 2);
	ck_assert(p[15].done);
	probe_read(&g, &p[0], p[0].item, LIMIT / 2, LIMIT / 2);
	ck_assert(!p[0].done);
	rig_stop(&g);
}
END_TEST

START_TEST(test_readers_beyond_the_staging_bound_wait_and_are_served)
{
	static struct probe p[32];
	struct cache_status s;
	struct rig g;

	rig_start(&g, "128K");
	for (uint64_t i = 0; i < 32; i++)
		probe_read(&g, &p[i], file_item(&g, i, LIMIT, 0), 0, LIMIT);
	cache_status(g.cache, &s);
	ck_assert_uint_eq(s.parked, 32);
	ck_assert_uint_le(s.staging_bytes, STAGING);
	answer_all(&g.hand);
	for (int i = 0; i < 32; i++)
		ck_assert(p[i].done && p[i].right);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 32 * LIMIT);
	rig_stop(&g);
}
END_TEST

START_TEST(test_demand_goes_before_prefetch)
{
	struct cache_item item;
	struct origin_read *r;
	struct probe p;
	struct rig g;

	rig_start(&g, "64M");
	/* Fills the half of the depth that prefetch may have. */
	for (uint64_t i = 0; i < 16; i++) {
		item = file_item(&g, 100, 64 * LIMIT, i * CHUNK);
		cache_prefetch(g.cache, &item, 0, CHUNK);
	}
	ck_assert_uint_eq(g.hand.n, 4);
	probe_read(&g, &p, file_item(&g, 5, 5000, 0), 0, 5000);
	ck_assert_uint_eq(g.hand.n, 5);
	r = hand_take(&g.hand, 4);
	ck_assert_uint_eq(r->len, 5000);
	answer(r, 0);
	ck_assert(p.right);
	answer_all(&g.hand);
	rig_stop(&g);
}
END_TEST

START_TEST(test_requests_that_hang_do_not_keep_others_from_the_origin)
{
	static struct probe p[9];
	struct rig g;

	rig_start(&g, "16M");
	for (uint64_t i = 0; i < 9; i++)
		probe_read(&g, &p[i], file_item(&g, i, 1000, 0), 0, 1000);
	ck_assert_uint_eq(g.hand.n, 8);	  /* the depth */
	answer(hand_take(&g.hand, 8), 0); /* waits until it is started */
	ck_assert(p[8].right);
	ck_assert(!p[0].done);
	rig_stop(&g);
	ck_assert_int_eq(p[0].status, -ENOTCONN);
}
END_TEST

struct warm_probe {
	struct cache_warm w;
	_Atomic int status; /* 1: not yet */
};

static void warm_probe_done(struct cache_warm *w, int status)
{
	CONTAINER_OF(w, struct warm_probe, w)->status = status;
}

START_TEST(test_warming_fetches_what_fits_and_says_what_does_not)
{
	struct warm_probe w = {.w = {.done = warm_probe_done}, .status = 1};
	struct cache_item small, big;
	struct rig g;

	rig_start(&g, "512K");
	small = file_item(&g, 1, 100000, 0);
	big = file_item(&g, 2, 600000, 0);
	ck_assert_int_eq(cache_warm(g.cache, &small, &w.w), 0);
	answer_all(&g.hand);
	while (w.status == 1)
		sched_yield();
	ck_assert_int_eq(w.status, 0);
	ck_assert(cache_resident(g.cache, &small));
	ck_assert_int_eq(cache_warm(g.cache, &small, &w.w), -EEXIST);
	ck_assert_int_eq(cache_warm(g.cache, &big, &w.w), -ENOSPC);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, 100000);
	rig_stop(&g);
}
END_TEST

START_TEST(test_an_invalidated_item_fails_its_readers_and_leaves_its_tier)
{
	struct cache_item item;
	struct probe p;
	struct rig g;

	rig_start(&g, "16M");
	item = file_item(&g, 1, 1000, 0);
	probe_read(&g, &p, item, 0, 1000);
	answer_all(&g.hand);
	cache_settle(g.cache, 10 * NS_PER_S);
	cache_invalidate(g.cache, &item);
	ck_assert(!cache_resident(g.cache, &item));
	ck_assert_uint_eq(g.fix.counters.invalidated, 1);
	probe_read(&g, &p, item, 0, 1000);
	ck_assert(!p.done);
	cache_invalidate(g.cache, &item);
	ck_assert_int_eq(p.status, -ESTALE);
	answer_all(&g.hand);
	ck_assert(!cache_resident(g.cache, &item));
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_staging_bound_too_small_for_items_is_refused)
{
	struct cache_config config = {
		.limit_bytes = LIMIT,
		.chunk_bytes = CHUNK,
		.staging_bytes = LIMIT,
	};
	struct cache *c;
	struct error err;

	ck_assert_int_eq(cache_new(&c, &config, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "--staging"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cache");
	TCase *t = tcase_create("cache");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 30);
	tcase_add_test(
		t, test_many_first_readers_cause_one_origin_read_of_each_byte);
	tcase_add_test(
		t, test_a_reader_gets_its_bytes_before_the_item_is_complete);
	tcase_add_test(t, test_a_published_item_is_a_hit_without_the_origin);
	tcase_add_test(t, test_a_chunk_fetches_only_the_pages_that_are_read);
	tcase_add_test(
		t, test_a_failed_fetch_is_told_to_its_readers_and_tried_anew);
	tcase_add_test(t, test_a_stale_version_is_reported_and_never_cached);
	tcase_add_test(t,
		test_what_does_not_fit_passes_through_and_leaves_when_served);
	tcase_add_test(t,
		test_staging_never_passes_its_bound_and_the_oldest_goes_first);
	tcase_add_test(
		t, test_readers_beyond_the_staging_bound_wait_and_are_served);
	tcase_add_test(t, test_demand_goes_before_prefetch);
	tcase_add_test(
		t, test_requests_that_hang_do_not_keep_others_from_the_origin);
	tcase_add_test(
		t, test_warming_fetches_what_fits_and_says_what_does_not);
	tcase_add_test(t,
		test_an_invalidated_item_fails_its_readers_and_leaves_its_tier);
	tcase_add_test(t, test_a_staging_bound_too_small_for_items_is_refused);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

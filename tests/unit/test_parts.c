/* SPDX-License-Identifier: MIT */
/* Tests of chunks of which programs read only ranges. When the memory of the
 * fetched pages is needed, the pages are written to a tier as a part, and are
 * not fetched again. */
#include "cache_fixture.h"
#include "suite.h"

#define SHARD (64 * LIMIT)
#define PART ((size_t)65536)
#define CHUNKS 40u /* more chunks than the memory has room for */

static struct cache_item chunk(struct rig *g, uint64_t i)
{
	return file_item(g, 1, SHARD, i * CHUNK);
}

/* Read, and compare the bytes. Returns the number of bytes that were requested
 * from the origin. */
static uint64_t asked(
	struct rig *g, struct cache_item item, size_t off, size_t len)
{
	uint64_t before = g->fix.counters.origin_bytes;
	struct probe p;

	probe_read(g, &p, item, off, len);
	for (bool done = false; !done;) {
		answer_all(&g->hand);
		pthread_mutex_lock(&p.lock);
		done = p.done;
		pthread_mutex_unlock(&p.lock);
	}
	ck_assert(p.right);
	return g->fix.counters.origin_bytes - before;
}

/* Read a part of each chunk. */
static void read_parts(struct rig *g, size_t off)
{
	for (uint64_t i = 0; i < CHUNKS; i++) {
		ck_assert_uint_eq(asked(g, chunk(g, i), off, PART), PART);
		cache_settle(g->cache, 10 * NS_PER_S);
	}
	ck_assert_uint_eq(g->fix.counters.partial_dropped, 0);
}

static struct tier_status tier(struct rig *g)
{
	struct tier_status st;

	store_tier_status(g->fix.store, 0, &st);
	return st;
}

/* Start with a part of each chunk. Returns the number of parts in the tier. */
static uint64_t start_with_parts(struct rig *g)
{
	rig_start(g, "32M");
	read_parts(g, 0);
	return tier(g).entries;
}

/* Returns the number of entries that a sweep deletes if all chunks exist. */
static uint64_t swept(struct rig *g)
{
	store_unmark_all(g->fix.store);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		struct cache_item item = chunk(g, i);

		cache_mark(g->cache, &item);
	}
	return store_sweep(g->fix.store);
}

START_TEST(test_parts_go_to_a_tier_before_their_memory_is_wanted)
{
	struct rig g;

	ck_assert_uint_ge(start_with_parts(&g), CHUNKS - STAGING / CHUNK);
	ck_assert_uint_eq(asked(&g, chunk(&g, 0), 0, PART), 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_chunk_whose_part_is_in_a_tier_asks_for_the_rest_alone)
{
	struct cache_item item;
	struct rig g;

	rig_start(&g, "32M");
	read_parts(&g, PART);
	item = chunk(&g, 0);
	/* Read one more page at each end of the part. */
	ck_assert_uint_eq(
		asked(&g, item, PART - 4096, PART + 2 * 4096), 2 * 4096);
	ck_assert_uint_eq(g.fix.counters.part_bytes, PART);
	ck_assert_uint_eq(asked(&g, item, 0, CHUNK), CHUNK - PART - 2 * 4096);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert(cache_resident(g.cache, &item));
	ck_assert_uint_eq(asked(&g, item, 0, CHUNK), 0);
	rig_stop(&g);
}
END_TEST

/* The tier has room for many more chunks; if _i is set, for exactly these. */
START_TEST(test_parts_grow_until_their_chunks_are_whole)
{
	const uint64_t most = CHUNKS * (CHUNK + 4096);
	struct rig g;

	rig_start(&g, _i ? "10400K" : "32M");
	for (size_t off = 0; off < CHUNK; off += PART)
		read_parts(&g, off);
	ck_assert_uint_eq(g.fix.counters.origin_bytes, CHUNKS * CHUNK);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		struct cache_item item = chunk(&g, i);

		ck_assert(cache_resident(g.cache, &item));
		ck_assert_uint_eq(asked(&g, item, 0, CHUNK), 0);
	}
	/* The parts are deleted, and only the chunks are left. */
	ck_assert_uint_eq(tier(&g).entries, CHUNKS);
	ck_assert_uint_le(tier(&g).used_bytes, most);
	ck_assert_uint_eq(tier(&g).reserved_bytes, 0);
	rig_stop(&g);
}
END_TEST

START_TEST(test_parts_of_a_version_that_ceased_are_deleted)
{
	struct rig g;

	(void)start_with_parts(&g);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		struct cache_item item = chunk(&g, i);

		cache_invalidate(g.cache, &item);
	}
	ck_assert_uint_eq(tier(&g).entries, 0);
	ck_assert_uint_eq(tier(&g).used_bytes + tier(&g).reserved_bytes, 0);
	ck_assert_uint_eq(asked(&g, chunk(&g, 0), 0, PART), PART);
	rig_stop(&g);
}
END_TEST

START_TEST(test_what_still_exists_keeps_its_parts)
{
	struct rig g;
	uint64_t entries;

	entries = start_with_parts(&g);
	ck_assert_uint_eq(swept(&g), 0);
	ck_assert_uint_eq(tier(&g).entries, entries);
	store_unmark_all(g.fix.store);
	ck_assert_uint_eq(store_sweep(g.fix.store), entries);
	rig_stop(&g);
}
END_TEST

START_TEST(test_small_parts_are_not_worth_the_room_of_their_chunks)
{
	struct rig g;

	rig_start(&g, "32M");
	for (uint64_t i = 0; i < CHUNKS; i++)
		ck_assert_uint_eq(asked(&g, chunk(&g, i), 0, 8192), 8192);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(tier(&g).entries, 0);
	ck_assert_uint_eq(g.fix.counters.partial_dropped,
		(CHUNKS - STAGING / CHUNK) * 8192);
	rig_stop(&g);
}
END_TEST

/* The daemon was killed between writing the chunk and deleting its part, so the
 * part is still there. */
START_TEST(test_a_part_beside_its_whole_chunk_is_swept)
{
	struct reservation res;
	void *data;
	struct cache_item item;
	struct hash128 key;
	struct rig g;

	(void)start_with_parts(&g);
	item = chunk(&g, 0);
	key = cache_key(g.cache, &item);
	data = calloc(1, CHUNK);
	ck_assert_int_eq(store_reserve(g.fix.store, CHUNK, &res), 0);
	ck_assert_int_eq(store_publish(g.fix.store, &res, key, data, CHUNK), 0);
	free(data);
	ck_assert_uint_eq(swept(&g), 1);
	rig_stop(&g);
}
END_TEST

START_TEST(test_without_room_in_a_tier_the_oldest_parts_leave_memory)
{
	const unsigned room = STAGING / CHUNK;
	struct rig g;

	rig_start(&g, "128K");
	for (unsigned i = 0; i <= room; i++) {
		ck_assert_uint_eq(g.fix.counters.partial_dropped, 0);
		ck_assert_uint_eq(asked(&g, chunk(&g, i), 0, PART), PART);
	}
	/* There was one part too many, so the first part was deleted. */
	ck_assert_uint_eq(g.fix.counters.partial_dropped, PART);
	ck_assert_uint_eq(asked(&g, chunk(&g, room), 0, PART), 0);
	ck_assert_uint_eq(asked(&g, chunk(&g, 0), 0, PART), PART);
	rig_stop(&g);
}
END_TEST

/* Fewer parts are being loaded than are allowed at a time; the other loads
 * wait. */
START_TEST(test_parts_that_are_being_loaded_at_the_end_stay)
{
	static struct probe p[STAGING / CHUNK];
	struct rig g;
	uint64_t entries;

	(void)start_with_parts(&g);
	rig_close(&g);
	rig_open(&g, "32M");
	entries = tier(&g).entries;
	for (uint64_t i = 0; i < STAGING / CHUNK; i++)
		probe_read(&g, &p[i], chunk(&g, i), 2 * PART, PART);
	rig_close(&g);
	rig_open(&g, "32M");
	ck_assert_uint_eq(tier(&g).entries, entries);
	rig_stop(&g);
}
END_TEST

/* The tier has become too small to admit the chunk in place of the part. */
START_TEST(test_a_part_stays_if_its_chunk_cannot_have_its_room)
{
	struct rig g;
	uint64_t entries;

	(void)start_with_parts(&g);
	rig_close(&g);
	rig_open(&g, "1M");
	entries = tier(&g).entries;
	ck_assert_uint_eq(asked(&g, chunk(&g, 0), 0, 2 * PART), PART);
	ck_assert_uint_eq(asked(&g, chunk(&g, 1), 0, CHUNK), CHUNK - PART);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(tier(&g).entries, entries);
	ck_assert_uint_eq(tier(&g).reserved_bytes, 0);
	rig_stop(&g);
}
END_TEST

/* -- The end of a mount ---------------------------------------------------- */

#define FEW 6u /* number of chunks that stay in memory */

/* End a mount after reads of FEW chunks. Returns the number of entries that the
 * next mount finds. */
static uint64_t ended_with(struct rig *g, const char *size, size_t len)
{
	rig_start(g, size);
	for (uint64_t i = 0; i < FEW; i++)
		ck_assert_uint_eq(asked(g, chunk(g, i), PART, len), len);
	ck_assert_uint_eq(tier(g).entries, 0);
	rig_close(g);
	rig_open(g, size);
	ck_assert_uint_eq(tier(g).reserved_bytes, 0);
	return tier(g).entries;
}

START_TEST(test_parts_in_memory_are_kept_at_the_end)
{
	const size_t len = _i ? 4096 : PART;
	struct rig g;

	ck_assert_uint_eq(ended_with(&g, "32M", len), FEW);
	ck_assert_uint_eq(g.fix.counters.partial_dropped, 0);
	for (uint64_t i = 0; i < FEW; i++) {
		ck_assert_uint_eq(asked(&g, chunk(&g, i), PART, len), 0);
		ck_assert_uint_eq(asked(&g, chunk(&g, i), 0, PART + len), PART);
	}
	rig_stop(&g);
}
END_TEST

/* Parts may use half of the tier, which has room for one and a half of the
 * chunks. */
START_TEST(test_small_parts_are_kept_at_the_end_in_half_of_a_tier)
{
	const uint64_t charge = CHUNK + 4096;
	struct rig g;
	char size[32];

	(void)snprintf(size, sizeof(size), "%u", (unsigned)(3 * charge));
	ck_assert_uint_eq(ended_with(&g, size, 8192), 1);
	ck_assert_uint_eq(g.fix.counters.partial_dropped, (FEW - 1) * 8192);
	rig_stop(&g);
}
END_TEST

START_TEST(test_large_parts_are_kept_at_the_end_in_all_of_a_tier)
{
	const uint64_t charge = CHUNK + 4096;
	struct rig g;
	char size[32];

	(void)snprintf(size, sizeof(size), "%u", (unsigned)(3 * charge));
	ck_assert_uint_eq(ended_with(&g, size, PART), 3);
	ck_assert_uint_eq(g.fix.counters.partial_dropped, (FEW - 3) * PART);
	rig_stop(&g);
}
END_TEST

START_TEST(test_a_chunk_is_kept_at_the_end_while_more_of_it_is_on_its_way)
{
	struct probe p;
	struct rig g;

	rig_start(&g, "32M");
	ck_assert_uint_eq(asked(&g, chunk(&g, 0), 0, PART), PART);
	probe_read(&g, &p, chunk(&g, 0), PART, PART);
	rig_close(&g);
	ck_assert(p.done);
	ck_assert_int_eq(p.status, -ENOTCONN);
	rig_open(&g, "32M");
	ck_assert_uint_eq(asked(&g, chunk(&g, 0), 0, 2 * PART), PART);
	rig_stop(&g);
}
END_TEST

/* -- Many readers ---------------------------------------------------------- */

#define READERS 4
#define READS 3000

struct reader {
	struct rig *g;
	pthread_t thread;
	unsigned seed;
	struct probe probe[READS];
};

static _Atomic bool readers_done;

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	struct rig own = {.cache = r->g->cache};

	own.scratch = store_scratch_new();
	for (int i = 0; i < READS; i++) {
		struct probe *p = &r->probe[i];
		size_t page = (size_t)rand_r(&r->seed) % (CHUNK / 4096 - 24);
		size_t pages = 1 + (size_t)rand_r(&r->seed) % 24;

		probe_read(&own, p,
			chunk(&own, (uint64_t)rand_r(&r->seed) % CHUNKS),
			page * 4096, pages * 4096);
		probe_wait(p);
		ck_assert(p->right);
	}
	store_scratch_free(own.scratch);
	return NULL;
}

static void *origin_main(void *arg)
{
	struct rig *g = arg;

	while (!readers_done) {
		answer_all(&g->hand);
		sched_yield();
	}
	return NULL;
}

START_TEST(test_readers_that_meet_parts_on_their_way_get_the_right_bytes)
{
	static struct reader readers[READERS];
	pthread_t origin;
	struct rig g;

	rig_start(&g, "32M");
	readers_done = false;
	ck_assert_int_eq(pthread_create(&origin, NULL, origin_main, &g), 0);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i].g = &g;
		readers[i].seed = i + 1;
		ck_assert_int_eq(pthread_create(&readers[i].thread, NULL,
					 reader_main, &readers[i]),
			0);
	}
	for (unsigned i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_join(readers[i].thread, NULL), 0);
	readers_done = true;
	ck_assert_int_eq(pthread_join(origin, NULL), 0);
	cache_settle(g.cache, 10 * NS_PER_S);
	ck_assert_uint_eq(g.fix.counters.checksum_errors, 0);
	ck_assert_uint_le(g.fix.counters.origin_bytes,
		CHUNKS * CHUNK + g.fix.counters.partial_dropped);
	rig_stop(&g);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		test_parts_go_to_a_tier_before_their_memory_is_wanted,
		test_a_chunk_whose_part_is_in_a_tier_asks_for_the_rest_alone,
		test_parts_of_a_version_that_ceased_are_deleted,
		test_what_still_exists_keeps_its_parts,
		test_small_parts_are_not_worth_the_room_of_their_chunks,
		test_parts_that_are_being_loaded_at_the_end_stay,
		test_a_part_beside_its_whole_chunk_is_swept,
		test_a_part_stays_if_its_chunk_cannot_have_its_room,
		test_without_room_in_a_tier_the_oldest_parts_leave_memory,
		test_small_parts_are_kept_at_the_end_in_half_of_a_tier,
		test_large_parts_are_kept_at_the_end_in_all_of_a_tier,
		test_a_chunk_is_kept_at_the_end_while_more_of_it_is_on_its_way,
		test_readers_that_meet_parts_on_their_way_get_the_right_bytes,
	};
	Suite *s = suite_create("parts");
	TCase *tc = case_of(s, "parts");

	case_add(tc, tests, sizeof(tests) / sizeof(*tests));
	tcase_add_loop_test(
		tc, test_parts_grow_until_their_chunks_are_whole, 0, 2);
	tcase_add_loop_test(tc, test_parts_in_memory_are_kept_at_the_end, 0, 2);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

/* SPDX-License-Identifier: MIT */
/* Tests of src/common/base's pure parts: size, err, feature, hash, key, list.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/feature.h"
#include "common/base/hash.h"
#include "common/format/key.h"
#include "common/base/list.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/base/size.h"
#include "common/base/table.h"
#include "common/base/thread_pool.h"
#include "common/base/timer.h"
#include "suite.h"

/* -- size -- */

static uint64_t parsed(const char *text, uint64_t whole_bytes)
{
	struct error err = {""};
	uint64_t bytes = 0;

	ck_assert_msg(size_parse(text, whole_bytes, &bytes, &err) == 0,
		"'%s': %s", text, err.msg);
	return bytes;
}

START_TEST(test_size_takes_suffixes_as_powers_of_1024)
{
	ck_assert_uint_eq(parsed("0", 0), 0);
	ck_assert_uint_eq(parsed("4096", 0), 4096);
	ck_assert_uint_eq(parsed("64K", 0), 65536);
	ck_assert_uint_eq(parsed("3M", 0), UINT64_C(3) << 20);
	ck_assert_uint_eq(parsed("2G", 0), UINT64_C(2) << 30);
	ck_assert_uint_eq(parsed("16777215T", 0), UINT64_C(16777215) << 40);
	ck_assert_uint_eq(parsed("18446744073709551615", 0), UINT64_MAX);
}
END_TEST

START_TEST(test_size_takes_fractions_of_a_unit_exactly)
{
	ck_assert_uint_eq(parsed("1.5G", 0), UINT64_C(3) << 29);
	ck_assert_uint_eq(parsed("0.25K", 0), 256);
	ck_assert_uint_eq(parsed("0.000001T", 0), 1099511);
	ck_assert_uint_eq(parsed("7.0", 0), 7);
}
END_TEST

START_TEST(test_size_takes_percentages_of_the_whole)
{
	ck_assert_uint_eq(parsed("10%", 1000), 100);
	ck_assert_uint_eq(parsed("0.5%", 1000), 5);
	ck_assert_uint_eq(parsed("100%", UINT64_MAX), UINT64_MAX);
	ck_assert_uint_eq(parsed("50%", UINT64_MAX), UINT64_MAX / 2);
	ck_assert_uint_eq(parsed("0%", 1000), 0);
}
END_TEST

static const char *const size_nonsense[] = {"", " ", "K", "-1", "+1", " 1",
	"1 ", "1 K", "1KB", "1k", "1.K", ".5K", "1..5K", "0x10", "1e3", "1.5",
	"1.0000001K", "%", "101%", "100.000001%", "1%%", "1K%", "nan"};

START_TEST(test_size_refuses_nonsense_and_names_it)
{
	const char *text = size_nonsense[_i];
	struct error err = {""};
	uint64_t bytes = 42;

	ck_assert_int_eq(size_parse(text, 1000, &bytes, &err), -EINVAL);
	ck_assert_uint_eq(bytes, 42);
	ck_assert_ptr_nonnull(strstr(err.msg, text));
}
END_TEST

static const char *const size_too_large[] = {"18446744073709551616",
	"99999999999999999999999", "16777216T", "18014398509481984K"};

START_TEST(test_size_refuses_what_does_not_fit_64_bits)
{
	uint64_t bytes = 42;

	ck_assert_int_eq(
		size_parse(size_too_large[_i], 0, &bytes, NULL), -ERANGE);
	ck_assert_uint_eq(bytes, 42);
}
END_TEST

START_TEST(test_size_refuses_percentages_of_nothing)
{
	struct error err = {""};
	uint64_t bytes;

	ck_assert_int_eq(size_parse("10%", 0, &bytes, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "percentage"));
}
END_TEST

static const struct {
	uint64_t bytes;
	const char *text;
} size_texts[] = {
	{0, "0 B"},
	{1023, "1023 B"},
	{1024, "1.0 KiB"},
	{1536, "1.5 KiB"},
	{1048575, "1.0 MiB"},
	{UINT64_C(3) << 29, "1.5 GiB"},
	{UINT64_C(1) << 40, "1.0 TiB"},
	{UINT64_MAX, "16.0 EiB"},
};

START_TEST(test_size_formats_for_people)
{
	char buf[SIZE_TEXT_MAX];

	ck_assert_str_eq(
		size_format(size_texts[_i].bytes, buf), size_texts[_i].text);
}
END_TEST

/* -- err -- */

START_TEST(test_error_keeps_the_code_and_formats_it)
{
	struct error err;

	errno = EINTR;
	ck_assert_int_eq(
		error_set(&err, -ENOENT, "cannot open '%s': %m", "x"), -ENOENT);
	ck_assert_str_eq(err.msg, "cannot open 'x': No such file or directory");
	ck_assert_int_eq(errno, EINTR);
}
END_TEST

START_TEST(test_error_wrap_puts_context_before_the_cause)
{
	struct error err;

	(void)error_set(&err, -EIO, "cause");
	ck_assert_int_eq(error_wrap(&err, -EIO, "tier '%s'", "/c"), -EIO);
	ck_assert_str_eq(err.msg, "tier '/c': cause");
}
END_TEST

START_TEST(test_error_may_be_null)
{
	ck_assert_int_eq(error_set(NULL, -EIO, "x"), -EIO);
	ck_assert_int_eq(error_wrap(NULL, -EIO, "x"), -EIO);
}
END_TEST

START_TEST(test_error_cuts_what_is_too_long)
{
	char longer[2 * sizeof(struct error)];
	struct error err;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	(void)error_set(&err, -EIO, "%s", longer);
	ck_assert_uint_eq(strlen(err.msg), sizeof(err.msg) - 1);
	(void)error_wrap(&err, -EIO, "context");
	ck_assert_uint_eq(strlen(err.msg), sizeof(err.msg) - 1);
	ck_assert_int_eq(strncmp(err.msg, "context: xxx", 12), 0);
}
END_TEST

/* -- feature -- */

START_TEST(test_feature_is_on_unless_listed)
{
	(void)unsetenv("REFRAIN_DISABLE");
	ck_assert(feature_enabled("io_uring"));
	ck_assert_int_eq(setenv("REFRAIN_DISABLE", "tmpfile,io_uring", 1), 0);
	ck_assert(!feature_enabled("io_uring"));
	ck_assert(!feature_enabled("tmpfile"));
	ck_assert(feature_enabled("direct_io"));
	ck_assert_int_eq(setenv("REFRAIN_DISABLE", "", 1), 0);
	ck_assert(feature_enabled("io_uring"));
}
END_TEST

START_TEST(test_feature_names_match_whole)
{
	ck_assert_int_eq(setenv("REFRAIN_DISABLE", "io,io_uring2,allx", 1), 0);
	ck_assert(feature_enabled("io_uring"));
}
END_TEST

START_TEST(test_feature_all_disables_every_one)
{
	ck_assert_int_eq(setenv("REFRAIN_DISABLE", "x,all", 1), 0);
	ck_assert(!feature_enabled("io_uring"));
	ck_assert(!feature_enabled("readdirplus"));
}
END_TEST

/* -- hash and key: on disk for ever, so pinned to constants -- */

/* The published test vectors of XXH3 for the empty input. */
START_TEST(test_hash_is_xxh3)
{
	struct hash128 h = hash128("", 0);

	ck_assert(hash64("", 0, 0) == UINT64_C(0x2d06800538d394c2));
	ck_assert(h.hi == UINT64_C(0x99aa06d3014798d8));
	ck_assert(h.lo == UINT64_C(0x6001c324468d497f));
}
END_TEST

START_TEST(test_hash_of_a_stream_is_that_of_the_whole)
{
	struct hash_stream *h = hash_stream_new();
	char bytes[1000];

	memset(bytes, 5, sizeof(bytes));
	ck_assert_ptr_nonnull(h);
	ck_assert(hash_stream_value(h) == hash64("", 0, 0));
	for (size_t at = 0, n = 1; at < sizeof(bytes); at += n++) {
		n = n < sizeof(bytes) - at ? n : sizeof(bytes) - at;
		hash_stream_add(h, bytes + at, n);
		ck_assert(hash_stream_value(h) == hash64(bytes, at + n, 0));
	}
	hash_stream_free(h);
	hash_stream_free(NULL);
}
END_TEST

START_TEST(test_hash_depends_on_seed_and_every_byte)
{
	ck_assert(hash64("abc", 3, 0) != hash64("abc", 3, 1));
	ck_assert(hash64("abc", 3, 0) != hash64("abd", 3, 0));
	ck_assert(hash64("abc", 3, 0) != hash64("abc\0", 4, 0));
}
END_TEST

static uint64_t inode(const char *d, const char *p, struct file_version v)
{
	return key_inode(key_digest(d), key_digest(p), v);
}

static struct hash128 key_item(const char *dataset, const char *path,
	struct file_version version, uint64_t offset_bytes, uint64_t size_bytes)
{
	return key_item_of(key_digest(dataset), key_digest(path), version,
		offset_bytes, size_bytes);
}

static const struct file_version version_a = {
	.size_bytes = 110000,
	.mtime_ns = INT64_C(1700000000123456789),
};

START_TEST(test_key_never_changes)
{
	struct hash128 k = key_item(
		"/data/train", "n01440764/a.JPEG", version_a, 65536, 44464);

	ck_assert(k.hi == UINT64_C(0x57faaccde5918433));
	ck_assert(k.lo == UINT64_C(0xa5e6fd77cb50c272));
	ck_assert(inode("/data/train", "n01440764/a.JPEG", version_a) ==
		UINT64_C(0x2d64e37d8b3f84be));
	ck_assert(inode("/data/train", "", (struct file_version){0}) ==
		UINT64_C(0xe1df982c4f4cb655));
}
END_TEST

static bool same(struct hash128 a, struct hash128 b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

START_TEST(test_key_of_a_tag_never_changes)
{
	struct file_version v = version_a;
	struct hash128 k;

	v.tag = 1;
	k = key_item("/data/train", "n01440764/a.JPEG", v, 65536, 44464);
	ck_assert_uint_eq(k.hi, UINT64_C(10334073979317614361));
	ck_assert_uint_eq(k.lo, UINT64_C(13460645562939669076));
}
END_TEST

START_TEST(test_key_depends_on_every_field)
{
	struct file_version b = version_a, c = version_a, d = version_a;
	struct hash128 k = key_item("d", "p", version_a, 0, 10);

	b.size_bytes++;
	c.mtime_ns++;
	d.tag++;
	ck_assert(!same(k, key_item("d", "p", d, 0, 10)));
	ck_assert(same(k, key_item("d", "p", version_a, 0, 10)));
	ck_assert(!same(k, key_item("e", "p", version_a, 0, 10)));
	ck_assert(!same(k, key_item("d", "q", version_a, 0, 10)));
	ck_assert(!same(k, key_item("d", "p", b, 0, 10)));
	ck_assert(!same(k, key_item("d", "p", c, 0, 10)));
	ck_assert(!same(k, key_item("d", "p", version_a, 1, 10)));
	ck_assert(!same(k, key_item("d", "p", version_a, 0, 11)));
	ck_assert(!same(key_item("dp", "", version_a, 0, 10), k));
}
END_TEST

START_TEST(test_key_inode_is_of_the_version_and_never_reserved)
{
	struct file_version b = version_a, c = version_a;
	char path[16];

	b.mtime_ns++;
	c.tag++;
	ck_assert(inode("d", "p", version_a) != inode("d", "p", b));
	ck_assert(inode("d", "p", version_a) != inode("d", "p", c));
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(path, sizeof(path), "%d", i);
		ck_assert(inode("d", path, version_a) > 1);
	}
}
END_TEST

/* -- list -- */

struct node {
	int value;
	struct list link;
};

static void list_is(struct list *head, const int *values, size_t n)
{
	size_t i = 0;

	LIST_FOREACH(pos, head) {
		ck_assert_uint_lt(i, n);
		ck_assert_int_eq(CONTAINER_OF(pos, struct node, link)->value,
			values[i++]);
	}
	ck_assert_uint_eq(i, n);
}

static void fill(struct list *head, struct node *nodes, int n)
{
	list_init(head);
	for (int i = 0; i < n; i++) {
		nodes[i].value = i;
		list_add_tail(head, &nodes[i].link);
	}
}

START_TEST(test_array_keeps_its_elements_as_room_is_made)
{
	uint32_t *at = NULL;
	size_t room = 0;

	for (uint32_t n = 0; n < 1000; n++) {
		ck_assert_int_eq(ARRAY_ROOM(at, n, &room), 0);
		ck_assert_uint_gt(room, n);
		at[n] = n;
	}
	for (uint32_t n = 0; n < 1000; n++)
		ck_assert_uint_eq(at[n], n);
	/* The failure has not changed the array. */
	room = SIZE_MAX / sizeof(*at);
	ck_assert_int_eq(ARRAY_ROOM(at, room, &room), -ENOMEM);
	ck_assert_uint_eq(at[999], 999);
	free(at);
}
END_TEST

START_TEST(test_array_has_zeroes_where_it_grew)
{
	uint16_t *at = NULL;
	size_t room = 0, before;
	/* the next allocation will reuse this memory */
	char *used = malloc(65536);

	ck_assert_ptr_nonnull(used);
	memset(used, 0xff, 65536);
	free(used);
	ck_assert_int_eq(ARRAY_ROOM_ZEROED(at, 1000, &room), 0);
	ck_assert_uint_gt(room, 1000);
	for (size_t i = 0; i < room; i++)
		ck_assert_uint_eq(at[i], 0);
	memset(at, 0xff, room * sizeof(*at));
	before = room;
	ck_assert_int_eq(ARRAY_ROOM_ZEROED(at, 3 * before, &room), 0);
	for (size_t i = 0; i < room; i++)
		ck_assert_uint_eq(at[i], i < before ? 0xffff : 0);
	free(at);
}
END_TEST

START_TEST(test_array_grows_by_texts_and_elements_alike)
{
	struct array a = {NULL, 0, 0};
	uint64_t element, *at;

	ck_assert_ptr_null(array_pop(&a, sizeof(element)));
	ck_assert_int_eq(array_text(&a, "seven", 5), 0);
	ck_assert_int_eq(array_text(&a, "", 0), 6);
	for (element = 0; element < 1000; element++) {
		at = array_grow(&a, sizeof(element));
		ck_assert_ptr_nonnull(at);
		memcpy(at, &element, sizeof(element));
	}
	ck_assert_uint_eq(a.bytes, 7 + 1000 * sizeof(element));
	ck_assert_uint_ge(a.room, a.bytes);
	/* This is more than all memory. */
	ck_assert_ptr_null(array_grow(&a, SIZE_MAX - 3));
	memcpy(&element, array_pop(&a, sizeof(element)), sizeof(element));
	ck_assert_uint_eq(element, 999);
	array_trim(&a);
	ck_assert_uint_eq(a.room, a.bytes);
	ck_assert_str_eq(a.data, "seven");
	free(a.data);
}
END_TEST

#define NUMBERS 500u

/* A hash with few values, some of which lead to the last slots of any table. */
static uint32_t poor_hash(const void *kinds, uint32_t n)
{
	return n % *(const uint32_t *)kinds - *(const uint32_t *)kinds / 2;
}

static void table_is(
	const struct table *t, const bool in[NUMBERS + 1], uint32_t kinds)
{
	uint32_t used = 0;

	for (uint32_t n = 1; n <= NUMBERS; n++) {
		unsigned found = 0;

		TABLE_FOREACH(i, t, poor_hash(&kinds, n))
			found += i == n;
		ck_assert_msg(found == in[n],
			"%u is %u times in a table of %u, %u hashes", n, found,
			t->used, kinds);
		used += in[n];
	}
	ck_assert_uint_eq(t->used, used);
}

START_TEST(test_table_adds_many_as_it_adds_each)
{
	bool in[NUMBERS + 1] = {false};
	uint32_t kinds = 7, many[NUMBERS];
	struct table each = {NULL, 0, 0}, t = {NULL, 0, 0};

	for (uint32_t n = 1; n <= NUMBERS; n++) {
		ck_assert_int_eq(table_add(&each, n, poor_hash, &kinds), 0);
		many[n - 1] = n;
		in[n] = true;
	}
	ck_assert_int_eq(table_add(&t, 1, poor_hash, &kinds), 0);
	ck_assert_int_eq(
		table_add_all(&t, many + 1, NUMBERS - 1, poor_hash, &kinds), 0);
	table_is(&t, in, kinds);
	ck_assert_uint_eq(t.used, NUMBERS);
	/* Both tables have the same number of slots. */
	ck_assert_uint_eq(t.slots, each.slots);
	ck_assert_int_eq(table_add_all(&t, many, UINT32_MAX - NUMBERS,
				 poor_hash, &kinds),
		-ENOMEM);
	table_is(&t, in, kinds);
	table_release(&t);
	table_release(&each);
}
END_TEST

START_TEST(test_table_has_what_was_added_and_not_removed)
{
	uint32_t kinds = (uint32_t[]){1, 37, 499}[_i];
	bool in[NUMBERS + 1] = {false};
	struct table t = {NULL, 0, 0};

	table_is(&t, in, kinds);
	for (unsigned i = 0; i < 6000; i++) {
		uint32_t n = (uint32_t)hash64(&i, sizeof(i), 0) % NUMBERS + 1;

		if (in[n])
			table_remove(&t, n, poor_hash, &kinds);
		else
			ck_assert_int_eq(
				table_add(&t, n, poor_hash, &kinds), 0);
		in[n] = !in[n];
		if (i % 50 == 0)
			table_is(&t, in, kinds);
	}
	ck_assert_uint_ge(t.slots, t.used / 2 * 3);
	table_release(&t);
}
END_TEST

START_TEST(test_list_keeps_order_of_arrival)
{
	struct node nodes[3];
	struct list head;

	fill(&head, nodes, 0);
	ck_assert(list_empty(&head));
	fill(&head, nodes, 3);
	list_is(&head, (int[]){0, 1, 2}, 3);
}
END_TEST

START_TEST(test_list_del_is_idempotent)
{
	struct node nodes[3];
	struct list head;

	fill(&head, nodes, 3);
	list_del(&nodes[1].link);
	list_del(&nodes[1].link);
	list_is(&head, (int[]){0, 2}, 2);
}
END_TEST

START_TEST(test_list_can_be_emptied_in_a_loop)
{
	struct node nodes[4];
	struct list head;

	fill(&head, nodes, 4);
	LIST_FOREACH_SAFE(pos, next, &head)
		list_del(pos);
	ck_assert(list_empty(&head));
}
END_TEST

START_TEST(test_list_splice_moves_all_to_the_end)
{
	struct node a[2], b[2];
	struct list to, from;

	fill(&to, a, 2);
	fill(&from, b, 2);
	list_splice_tail(&to, &from);
	list_is(&to, (int[]){0, 1, 0, 1}, 4);
	ck_assert(list_empty(&from));
	list_splice_tail(&to, &from);
	list_is(&to, (int[]){0, 1, 0, 1}, 4);
}
END_TEST

/* -- cleanup -- */

START_TEST(test_cleanup_steal_hands_ownership_on)
{
	CLEANUP_FREE char *p = strdup("x");
	char *q = steal_ptr(&p);
	int fd = 7;

	ck_assert_ptr_null(p);
	ck_assert_str_eq(q, "x");
	free(q);
	ck_assert_int_eq(steal_fd(&fd), 7);
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(test_cleanup_lock_is_dropped_at_the_end_of_scope)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	{
		LOCK_SCOPE(&m);
		ck_assert_int_eq(pthread_mutex_trylock(&m), EBUSY);
	}
	ck_assert_int_eq(pthread_mutex_trylock(&m), 0);
	ck_assert_int_eq(pthread_mutex_unlock(&m), 0);
}
END_TEST

/* -- counters -- */

static void *look_at_lock(void *mutex)
{
	return lock_is_held(mutex) ? mutex : NULL;
}

START_TEST(test_lock_is_held_by_the_thread_that_took_it)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_t other;
	void *seen;

	ck_assert(!lock_is_held(&m));
	pthread_mutex_lock(&m);
	ck_assert(lock_is_held(&m));
	ck_assert_int_eq(pthread_create(&other, NULL, look_at_lock, &m), 0);
	ck_assert_int_eq(pthread_join(other, &seen), 0);
	ck_assert_ptr_null(seen);
	pthread_mutex_unlock(&m);
	ck_assert(!lock_is_held(&m));
}
END_TEST

static void *look_at_write_lock(void *lock)
{
	return lock_is_held_to_write(lock) ? lock : NULL;
}

START_TEST(test_lock_is_held_to_write_by_its_writer)
{
	pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
	pthread_t other;
	void *seen;

	pthread_rwlock_rdlock(&rw);
	ck_assert(!lock_is_held_to_write(&rw));
	pthread_rwlock_unlock(&rw);
	pthread_rwlock_wrlock(&rw);
	ck_assert(lock_is_held_to_write(&rw));
	ck_assert_int_eq(
		pthread_create(&other, NULL, look_at_write_lock, &rw), 0);
	ck_assert_int_eq(pthread_join(other, &seen), 0);
	ck_assert_ptr_null(seen);
	pthread_rwlock_unlock(&rw);
}
END_TEST

/* -- magic -- */

START_TEST(test_object_is_what_its_magic_number_says)
{
	struct thread_job job;

	thread_job_init(&job, NULL);
	ck_assert_ptr_eq(OBJECT(thread_job, (void *)&job), &job);
}
END_TEST

START_TEST(test_object_of_another_kind_aborts)
{
	struct timer timer;

	timer_init(&timer, NULL);
	(void)OBJECT(thread_job, (void *)&timer);
}
END_TEST

START_TEST(test_object_that_has_ended_aborts)
{
	struct thread_job job;

	thread_job_init(&job, NULL);
	MAGIC_END(&job);
	(void)OBJECT(thread_job, (void *)&job);
}
END_TEST

START_TEST(test_null_in_place_of_an_object_aborts)
{
	(void)OBJECT(thread_job, NULL);
}
END_TEST

/* -- lock -- */

#ifdef CHECK_LOCKS

static pthread_mutex_t outer, inner;

static void take_both(enum lock_name first, enum lock_name second)
{
	lock_init(&outer, first);
	lock_init(&inner, second);
	pthread_mutex_lock(&outer);
	pthread_mutex_lock(&inner);
	pthread_mutex_unlock(&outer);
	pthread_mutex_unlock(&inner);
}

START_TEST(test_locks_are_taken_in_the_order_of_their_ranks)
{
	take_both(RANK_CACHE, RANK_ENTRIES);
	/* the first two locks were released again */
	take_both(RANK_ENTRIES, RANK_TIER);
	take_both(RANK_CACHE, RANK_NONE);
	take_both(RANK_NONE, RANK_CACHE);
}
END_TEST

START_TEST(test_lock_out_of_order_aborts)
{
	take_both(RANK_ENTRIES, RANK_CACHE);
}
END_TEST

START_TEST(test_lock_of_the_same_rank_aborts)
{
	take_both(RANK_ENTRIES, RANK_ENTRIES);
}
END_TEST

START_TEST(test_lock_that_is_read_has_its_rank)
{
	pthread_rwlock_t names;

	lock_init_rw(&names, RANK_MANIFEST);
	lock_init(&inner, RANK_CACHE);
	pthread_rwlock_rdlock(&names);
	pthread_mutex_lock(&inner);
}
END_TEST

#endif

START_TEST(test_counter_table_reaches_every_counter)
{
	struct counters c = {0};
	size_t n = 0;

	COUNT_ADD(&c, hit_bytes, 5);
	COUNT(&c, hit_bytes);
	for (const struct counter_info *i = counter_table; i->name; i++, n++) {
		bool it = strcmp(i->name, "hit_bytes") == 0;

		ck_assert_uint_eq(counter_get(&c, i), it ? 6 : 0);
		ck_assert_int_eq(i->help[strlen(i->help) - 1], '.');
	}
	ck_assert_uint_eq(n,
		(sizeof(c) - sizeof(c.latency) - sizeof(c.trace)) /
			sizeof(uint64_t));
}
END_TEST

#define COUNTOF(a) ((int)(sizeof(a) / sizeof((a)[0])))

static void add_size(Suite *s)
{
	TCase *t = case_of(s, "size");

	tcase_add_test(t, test_size_takes_suffixes_as_powers_of_1024);
	tcase_add_test(t, test_size_takes_fractions_of_a_unit_exactly);
	tcase_add_test(t, test_size_takes_percentages_of_the_whole);
	tcase_add_loop_test(t, test_size_refuses_nonsense_and_names_it, 0,
		COUNTOF(size_nonsense));
	tcase_add_loop_test(t, test_size_refuses_what_does_not_fit_64_bits, 0,
		COUNTOF(size_too_large));
	tcase_add_test(t, test_size_refuses_percentages_of_nothing);
	tcase_add_loop_test(
		t, test_size_formats_for_people, 0, COUNTOF(size_texts));
}

static void add_err(Suite *s)
{
	TCase *t = case_of(s, "err");

	tcase_add_test(t, test_error_keeps_the_code_and_formats_it);
	tcase_add_test(t, test_error_wrap_puts_context_before_the_cause);
	tcase_add_test(t, test_error_may_be_null);
	tcase_add_test(t, test_error_cuts_what_is_too_long);
	tcase_add_test(t, test_feature_is_on_unless_listed);
	tcase_add_test(t, test_feature_names_match_whole);
	tcase_add_test(t, test_feature_all_disables_every_one);
}

static void add_key(Suite *s)
{
	TCase *t = case_of(s, "key");

	tcase_add_test(t, test_hash_is_xxh3);
	tcase_add_test(t, test_hash_of_a_stream_is_that_of_the_whole);
	tcase_add_test(t, test_hash_depends_on_seed_and_every_byte);
	tcase_add_test(t, test_key_never_changes);
	tcase_add_test(t, test_key_of_a_tag_never_changes);
	tcase_add_test(t, test_key_depends_on_every_field);
	tcase_add_test(t, test_key_inode_is_of_the_version_and_never_reserved);
}

static void add_list(Suite *s)
{
	TCase *t = case_of(s, "list");

	tcase_add_test(t, test_array_keeps_its_elements_as_room_is_made);
	tcase_add_test(t, test_array_has_zeroes_where_it_grew);
	tcase_add_test(t, test_array_grows_by_texts_and_elements_alike);
	tcase_add_test(t, test_table_adds_many_as_it_adds_each);
	tcase_add_loop_test(
		t, test_table_has_what_was_added_and_not_removed, 0, 3);
	tcase_add_test(t, test_list_keeps_order_of_arrival);
	tcase_add_test(t, test_list_del_is_idempotent);
	tcase_add_test(t, test_list_can_be_emptied_in_a_loop);
	tcase_add_test(t, test_list_splice_moves_all_to_the_end);
	tcase_add_test(t, test_cleanup_steal_hands_ownership_on);
	tcase_add_test(t, test_cleanup_lock_is_dropped_at_the_end_of_scope);
	tcase_add_test(t, test_lock_is_held_by_the_thread_that_took_it);
	tcase_add_test(t, test_lock_is_held_to_write_by_its_writer);
	tcase_add_test(t, test_counter_table_reaches_every_counter);
}

static void add_lock(Suite *s)
{
#ifdef CHECK_LOCKS
	TCase *t = case_of(s, "lock");

	tcase_add_test(t, test_locks_are_taken_in_the_order_of_their_ranks);
	tcase_add_test_raise_signal(t, test_lock_out_of_order_aborts, SIGABRT);
	tcase_add_test_raise_signal(
		t, test_lock_of_the_same_rank_aborts, SIGABRT);
	tcase_add_test_raise_signal(
		t, test_lock_that_is_read_has_its_rank, SIGABRT);
#else
	(void)s;
#endif
}

static void add_magic(Suite *s)
{
	TCase *t = case_of(s, "magic");

	tcase_add_test(t, test_object_is_what_its_magic_number_says);
	tcase_add_test_raise_signal(
		t, test_object_of_another_kind_aborts, SIGABRT);
	tcase_add_test_raise_signal(
		t, test_object_that_has_ended_aborts, SIGABRT);
	tcase_add_test_raise_signal(
		t, test_null_in_place_of_an_object_aborts, SIGABRT);
}

int main(void)
{
	Suite *s = suite_create("base");

	add_size(s);
	add_err(s);
	add_key(s);
	add_list(s);
	add_lock(s);
	add_magic(s);
	return run_suite(s);
}

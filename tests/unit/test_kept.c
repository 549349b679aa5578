/* SPDX-License-Identifier: MIT */
/* Tests of files whose pages the kernel keeps, in an ordinary directory, where
 * the kernel reports reads, too. All reports are handled at once, so no time
 * passes between reads. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/feature.h"
#include "analysis/subject/kept_pages_impl.h"
#include "mount/fs/pages.h"
#include "suite.h"

#define TOP "/tmp/refrain-kept.XXXXXX"

static char top[sizeof(TOP)];
static struct manifest *m;
static struct kept *k;
static bool may_stay;
static char seen[64]; /* first letters of the names that were seen */

static bool stays(void *arg, const struct cache_item *item)
{
	(void)arg;
	(void)item;
	return may_stay;
}

static void note_seen(void *arg, const struct cache_item *item)
{
	char path[MANIFEST_PATH_MAX];
	size_t n = strlen(seen);

	(void)arg;
	ck_assert_int_ge(
		manifest_path(m, (node_id)item->cookie, path, sizeof(path)), 0);
	ck_assert_uint_lt(n, sizeof(seen) - 1);
	seen[n] = path[0];
	seen[n + 1] = '\0';
}

static char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

/* Create a file of four bytes. */
static struct cache_item put(const char *name, node_id dir)
{
	struct file_entry e = {.name = name,
		.attr = {.kind = KIND_FILE, .version = {.size_bytes = 4}}};
	struct node_info info;
	FILE *f = fopen(path_of(name), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fputs("four", f), 1);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(
		manifest_put(m, dir, &e, 1, false, &info, NULL, NULL), 0);
	return (struct cache_item){
		.version = info.attr.version, .cookie = info.id, .size = 4};
}

static void read_file(const char *name)
{
	char buf[4];
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, buf, sizeof(buf)), sizeof(buf));
	ck_assert_int_eq(close(fd), 0);
}

static void set_up(void)
{
	struct kept_config config = {
		.mountpoint = top, .stays = stays, .seen = note_seen};

	memcpy(top, TOP, sizeof(TOP));
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(manifest_new(&m, "x"), 0);
	config.manifest = m;
	k = kept_new(&config);
	ck_assert_ptr_nonnull(k);
	kept_open(k);
	may_stay = true;
	seen[0] = '\0';
}

static void tear_down(void)
{
	static const char *const names[] = {"a", "b", "c"};

	kept_close(k);
	kept_free(k);
	manifest_free(m);
	for (size_t i = 0; i < 3; i++)
		(void)unlink(path_of(names[i]));
	ck_assert_int_eq(rmdir(top), 0);
}

/* Returns true if pages are dropped in time in one of a few attempts. A busy
 * machine may be late. */
static bool drops_before_its_time(struct cache_item *item)
{
	static struct counters counters;
	const struct timespec pace = {.tv_nsec = NS_PER_MS};
	const struct pages_config config = {.mountpoint = top,
		.manifest = m,
		.counters = &counters,
		.each_epoch = true,
		.whole_max_bytes = 1};
	uint64_t begun_ns = clock_now_ns(), took_ns = 0;
	struct pages *p;
	struct error err;

	atomic_store(&counters.pages_dropped, 0);
	ck_assert_int_eq(pages_new(&p, &config, &err), 0);
	/* The file has no pages at these offsets. The reader continues. */
	for (uint64_t off = 1u << 30; atomic_load(&counters.pages_dropped) == 0;
		off += 1u << 20) {
		pages_part(p, item, off, 1u << 20);
		(void)nanosleep(&pace, NULL);
		took_ns = clock_now_ns() - begun_ns;
	}
	pages_stop(p);
	pages_free(p);
	return took_ns < NS_PER_S; /* this is the time for which parts stay */
}

START_TEST(test_parts_far_over_the_bound_do_not_stay)
{
	struct cache_item a = put("a", NODE_ROOT);
	unsigned tries = 0;

	while (!drops_before_its_time(&a))
		ck_assert_uint_lt(++tries, 10);
}
END_TEST

START_TEST(test_a_file_that_is_opened_twice_is_seen_once)
{
	struct cache_item a = put("a", NODE_ROOT);

	ck_assert(kept_add(k, &a, 0));
	ck_assert_uint_eq(kept_bytes(k), 4);
	kept_look(k);
	ck_assert_str_eq(seen, "");
	read_file("a");
	read_file("a");
	kept_look(k);
	ck_assert_str_eq(seen, "a");
}
END_TEST

START_TEST(test_a_file_is_seen_again_after_others)
{
	struct cache_item a = put("a", NODE_ROOT), b = put("b", NODE_ROOT);

	ck_assert(kept_add(k, &a, 0) && kept_add(k, &b, 0));
	read_file("b");
	read_file("a");
	read_file("b");
	kept_look(k);
	ck_assert_str_eq(seen, "bab");
}
END_TEST

START_TEST(test_files_that_are_not_kept_are_not_seen)
{
	struct cache_item a = put("a", NODE_ROOT);

	(void)put("b", NODE_ROOT);
	ck_assert(kept_add(k, &a, 0));
	read_file("b");
	kept_look(k);
	ck_assert_str_eq(seen, "");
	may_stay = false;
	a = put("c", NODE_ROOT);
	ck_assert(!kept_add(k, &a, 0));
	read_file("c");
	kept_look(k);
	ck_assert_str_eq(seen, "");
	ck_assert_uint_eq(kept_bytes(k), 4);
}
END_TEST

static void note_gone(void *arg, const struct cache_item *item)
{
	*(struct cache_item *)arg = *item;
}

START_TEST(test_what_may_not_stay_is_given_up)
{
	struct cache_item a = put("a", NODE_ROOT), gone = {.cookie = 0};

	ck_assert(kept_add(k, &a, 0));
	kept_check(k, note_gone, &gone);
	ck_assert_uint_eq(gone.cookie, 0);
	may_stay = false;
	kept_check(k, note_gone, &gone);
	ck_assert_uint_eq(gone.cookie, a.cookie);
	ck_assert_uint_eq(kept_bytes(k), 0);
	read_file("a");
	kept_look(k);
	ck_assert_str_eq(seen, "");
}
END_TEST

START_TEST(test_files_that_cannot_be_watched_do_not_stay)
{
	struct file_entry e = {.name = "gone", .attr = {.kind = KIND_DIR}};
	struct node_info dir;
	struct cache_item a;

	ck_assert_int_eq(
		manifest_put(m, NODE_ROOT, &e, 1, false, &dir, NULL, NULL), 0);
	a = put("a", dir.id);
	ck_assert(!kept_add(k, &a, 0));
	ck_assert_uint_eq(kept_bytes(k), 0);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		test_a_file_that_is_opened_twice_is_seen_once,
		test_parts_far_over_the_bound_do_not_stay,
		test_a_file_is_seen_again_after_others,
		test_files_that_are_not_kept_are_not_seen,
		test_what_may_not_stay_is_given_up,
		test_files_that_cannot_be_watched_do_not_stay,
	};
	Suite *s = suite_create("kept");
	TCase *tc = case_of(s, "kept");

	/* Without inotify no pages stay; tests of a mount check that case. */
	if (!feature_enabled("inotify"))
		return s;
	tcase_add_checked_fixture(tc, set_up, tear_down);
	case_add(tc, tests, sizeof(tests) / sizeof(*tests));
	return s;
}

int main(void)
{
	return run_suite(suite());
}

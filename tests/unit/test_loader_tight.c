/* SPDX-License-Identifier: MIT */
/*
 * Tests of a loader whose memory holds only one large example at a time.
 * Whether an example is damaged, because it does not fit, must follow from its
 * size and from the memory alone, and not from what else was read, kept or
 * decoded at the time.
 */
#include "common/base/hash.h"
#include "loader_fixture.h"
#include "suite.h"

#define FEW 44u
#define MEMORY_BYTES (UINT64_C(6) << 20)
/* From this size on, a file and its image do not fit into MEMORY_BYTES. */
#define LARGE_BYTES ((off_t)5 << 20)

/* Returns the size of a file, from 512 KiB to 5.5 MiB. Most of its bytes follow
 * the end of the image. */
static off_t size_of(unsigned i)
{
	return (off_t)(1 + i * 7 % 11) << 19;
}

static void lengthen(const char *path, off_t bytes)
{
	ck_assert_int_eq(truncate(path, bytes), 0);
}

static void make_few(void)
{
	CLEANUP_FREE char *cwd = getcwd(NULL, 0);
	char path[256], cache[PATH_MAX];

	(void)snprintf(top, sizeof(top), "test_tight.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	for (unsigned c = 0; c < CLASSES; c++) {
		(void)snprintf(path, sizeof(path), "%s/c%u", top, c);
		ck_assert_int_eq(mkdir(path, 0777), 0);
	}
	for (unsigned i = 0; i < FEW; i++) {
		make_image(i, 300 + i % 7, 200 + i % 5);
		image_path(path, i);
		lengthen(path, size_of(i));
	}
	(void)snprintf(cache, sizeof(cache), "%s/%s.index", cwd, top);
	ck_assert_int_eq(setenv("XDG_CACHE_HOME", cache, 1), 0);
}

static void remove_few(void)
{
	char tar[160];

	fixture_remove();
	(void)snprintf(tar, sizeof(tar), "%s.tar", top);
	(void)unlink(tar);
	(void)unsetenv("REFRAIN_DISABLE");
}

/* Pack the files into a tar, with the files of an example next to each other.
 */
static void pack(char tar[160])
{
	char command[512];

	(void)snprintf(tar, 160, "%s.tar", top);
	(void)snprintf(command, sizeof(command),
		"tar -C %s --sort=name -cf %s .", top, tar);
	ck_assert_int_eq(system(command), 0);
}

static struct refrain_config config_tight(void)
{
	struct refrain_config c = config_of();

	c.batch = 4;
	c.window = 16;
	c.epochs = 2;
	c.memory_bytes = MEMORY_BYTES;
	c.policy = REFRAIN_ZERO_FILL;
	c.max_damage = 1;
	return c;
}

/* -- Which examples are damaged -------------------------------------------- */

struct found {
	bool damaged[FEW];
	uint64_t stream, pixels;
};

static unsigned number_of(const char *path)
{
	const char *name = strrchr(path, '/');

	ck_assert_ptr_nonnull(name);
	return (unsigned)strtoul(name + 1, NULL, 10);
}

static void find_damaged(const struct refrain_config *c, struct found *out)
{
	struct refrain_loader *l = open_loader(c);
	const struct refrain_batch *b;
	struct refrain_stats st;
	int rc;

	memset(out, 0, sizeof(*out));
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1) {
		for (uint32_t i = 0; i < b->count; i++) {
			if (!b->status[i])
				continue;
			ck_assert_int_eq(b->status[i], -E2BIG);
			out->damaged[number_of(
				refrain_path(l, b->indices[i]))] = true;
		}
		out->pixels = hash64(b->data, b->data_bytes, out->pixels);
		refrain_release(b);
	}
	ck_assert_msg(rc == 0, "%d: %s", rc, refrain_message(l));
	st = stats_of(l);
	out->stream = st.stream_hash;
	ck_assert_uint_le(st.memory_bytes_peak, c->memory_bytes * 11 / 10);
	ck_assert_int_eq(refrain_close(l), 0);
}

/* Find the damaged examples several times, with different numbers of threads,
 * and check that they are always the same. */
static struct found find_always(struct refrain_config *c)
{
	struct found first, again;

	c->threads = 1;
	find_damaged(c, &first);
	for (c->threads = 1; c->threads <= 8; c->threads *= 2) {
		find_damaged(c, &again);
		for (unsigned i = 0; i < FEW; i++)
			ck_assert_msg(first.damaged[i] == again.damaged[i],
				"%u threads: %u of %ld bytes", c->threads, i,
				(long)size_of(i));
		ck_assert_uint_eq(first.stream, again.stream);
		ck_assert_uint_eq(first.pixels, again.pixels);
	}
	return first;
}

static void expect_large_damaged(const struct found *f)
{
	for (unsigned i = 0; i < FEW; i++)
		ck_assert_msg(f->damaged[i] == (size_of(i) >= LARGE_BYTES),
			"%u of %ld bytes: %d", i, (long)size_of(i),
			f->damaged[i]);
}

static void disable_ring(int i)
{
	if (i)
		ck_assert_int_eq(setenv("REFRAIN_DISABLE", "io_uring", 1), 0);
}

START_TEST(test_only_files_larger_than_the_memory_are_damaged)
{
	struct refrain_config c = config_tight();
	struct found f;

	disable_ring(_i % 2);
	c.echo = 1 + _i / 2;
	f = find_always(&c);
	expect_large_damaged(&f);
}
END_TEST

START_TEST(test_only_large_members_of_a_tar_are_damaged)
{
	struct refrain_config c = config_tight();
	struct found f;
	char tar[160];

	pack(tar);
	c.dataset = tar;
	c.echo = 1 + _i;
	f = find_always(&c);
	expect_large_damaged(&f);
}
END_TEST

/* A list that another program has written may have wrong sizes. */
START_TEST(test_substitutes_for_large_files_are_always_the_same)
{
	struct refrain_config c = config_tight();
	struct found f;

	c.policy = REFRAIN_SUBSTITUTE;
	c.echo = 1 + _i;
	f = find_always(&c);
	(void)f;
}
END_TEST

/* -- Examples with members ------------------------------------------------- */

/* Each image gets two members, so that the three files together have size_of()
 * bytes. */
static void add_members(struct refrain_config *c)
{
	char path[256];

	c->fields = "image; json=json kind=bytes max=16; "
		    "seg=seg.png kind=bytes max=16";
	for (unsigned i = 0; i < FEW; i++) {
		off_t bytes = size_of(i) / 4;

		image_path(path, i);
		lengthen(path, size_of(i) - 3 * bytes);
		for (unsigned m = 0; m < 2; m++) {
			(void)snprintf(path, sizeof(path), "%s/c%u/%04u.%s",
				top, i % CLASSES, i, m ? "seg.png" : "json");
			write_file(path, path, strlen(path));
			lengthen(path, bytes * (1 + m));
		}
	}
}

START_TEST(test_only_examples_with_large_members_are_damaged)
{
	struct refrain_config c = config_tight();
	struct found f;
	char tar[160];

	add_members(&c);
	if (_i % 2) {
		pack(tar);
		c.dataset = tar;
	}
	c.echo = 1 + _i / 2;
	f = find_always(&c);
	expect_large_damaged(&f);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_tight");
	TCase *t = case_with(s, "tight", make_few, remove_few);

	tcase_add_loop_test(
		t, test_only_files_larger_than_the_memory_are_damaged, 0, 4);
	tcase_add_loop_test(
		t, test_only_large_members_of_a_tar_are_damaged, 0, 2);
	tcase_add_loop_test(
		t, test_substitutes_for_large_files_are_always_the_same, 0, 2);
	tcase_add_loop_test(
		t, test_only_examples_with_large_members_are_damaged, 0, 4);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

/* SPDX-License-Identifier: MIT */
/*
 * Tests of a loader without memory: one allocation after the other fails, while
 * it is opened and while it runs. The malloc() of this program replaces that of
 * the C library. Sanitizers have a malloc() of their own, so these tests are
 * skipped with them.
 */
#include "shared_fixture.h"
#include "suite.h"

#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
	(void)puts("the sanitizer has an allocator of its own");
	return 77;
}
#else

/* glibc's names of its functions. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

/* Number of allocations until one fails; below 0: no allocation fails. */
static _Atomic long countdown = -1;

static bool fails(void)
{
	if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(n, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return fails() ? NULL : __libc_memalign(align, bytes);
}

/* Add boxes in annotations to the configuration, and masks and texts for half
 * of the images. */
static void add_fields(struct refrain_config *c, char path[256])
{
	static const char coco[] =
		"{\"images\": [{\"id\": 1, \"file_name\": \"0001.jpg\"}], "
		"\"annotations\": [{\"image_id\": 1, \"bbox\": [1, 2, 30, 4], "
		"\"category_id\": 3, \"id\": 1}], "
		"\"categories\": [{\"id\": 3, \"name\": \"x\"}]}";

	for (unsigned i = 0; i < IMAGES; i += 2) {
		image_path(path, i);
		(void)strcpy(strrchr(path, '.'), ".txt");
		write_file(path, "3 4 5", 5);
	}
	(void)snprintf(path, 256, "%s/coco.json", top);
	write_file(path, coco, sizeof(coco) - 1);
	c->annotations = path;
	c->fields = "image; boxes optional; classes optional; "
		    "again=txt kind=bytes optional";
}

START_TEST(test_open_without_memory_is_a_clean_error)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	char path[256];
	long n = 0;

	if (_i)
		add_fields(&c, path);
	l = open_loader(&c); /* the dataset has its catalogue from now on */
	ck_assert_int_eq(refrain_close(l), 0);
	for (;; n++) {
		int rc;

		atomic_store(&countdown, n);
		rc = refrain_open(&l, &c);
		if (atomic_exchange(&countdown, -1) >= 0)
			break; /* opening needs no more allocations */
		if (rc == 0) { /* the failed allocation was not essential */
			ck_assert_int_eq(refrain_close(l), 0);
			continue;
		}
		ck_assert_ptr_null(l);
		ck_assert_msg(rc == -ENOMEM || rc == -EAGAIN, "%ld: %d: %s", n,
			rc, refrain_message(NULL));
		ck_assert_str_ne(refrain_message(NULL), "");
	}
	ck_assert_int_gt(n, 20);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* Either every batch comes, or the loader reports a lack of memory. */
START_TEST(test_run_without_memory_is_a_clean_error)
{
	struct refrain_config c = config_of();
	unsigned whole = 0, failed = 0;
	char path[256];

	if (_i)
		add_fields(&c, path);
	c.echo = 2;
	for (long n = 0; n < 60; n++) {
		struct refrain_loader *l = open_loader(&c);
		const struct refrain_batch *b;
		int rc;

		atomic_store(&countdown, n);
		while ((rc = refrain_next(l, &b, WAIT_MS)) == 1)
			refrain_release(b);
		atomic_store(&countdown, -1);
		ck_assert_msg(rc == 0 || rc == -ENOMEM, "%ld: %d: %s", n, rc,
			refrain_message(l));
		if (rc < 0)
			ck_assert_msg(strstr(refrain_message(l), "memory") ||
					strstr(refrain_message(l), "Cannot"),
				"%s", refrain_message(l));
		whole += rc == 0;
		failed += rc < 0;
		if (rc == 0)
			ck_assert_uint_eq(
				stats_of(l).served, (uint64_t)2 * IMAGES);
		ck_assert_int_eq(refrain_close(l), 0);
	}
	ck_assert_uint_eq(whole + failed, 60);
}
END_TEST

/* In a share, the host, its engine and the job each have memory of their own.
 */
START_TEST(test_share_without_memory_is_a_clean_error)
{
	struct refrain_config c = shared_config(0);
	struct refrain_loader *l = open_loader(&c);
	unsigned opened = 0, served = 0;
	const struct refrain_batch *b;

	ck_assert_int_eq(refrain_close(l), 0);
	for (long n = 0; opened < 40; n++) {
		int rc;

		atomic_store(&countdown, n);
		rc = refrain_open(&l, &c);
		opened += rc == 0;
		if (rc == 0)
			rc = refrain_next(l, &b, WAIT_MS);
		atomic_store(&countdown, -1);
		served += rc == 1;
		ck_assert_msg(rc == 1 || rc == -ENOMEM || rc == -EAGAIN,
			"%ld: %d: %s", n, rc, refrain_message(l));
		ck_assert(rc == 1 || refrain_message(l)[0]);
		if (rc == 1)
			refrain_release(b);
		if (l)
			ck_assert_int_eq(refrain_close(l), 0);
	}
	ck_assert_uint_lt(served, opened);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_alloc");
	TCase *tc = case_of(s, "alloc");

	tcase_add_unchecked_fixture(tc, make_all, remove_all);
	tcase_add_loop_test(
		tc, test_open_without_memory_is_a_clean_error, 0, 2);
	tcase_add_loop_test(tc, test_run_without_memory_is_a_clean_error, 0, 2);
	tcase_add_test(tc, test_share_without_memory_is_a_clean_error);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
#endif

/* SPDX-License-Identifier: MIT */
/* Tests of how a thread waits for requests: a thread that polls must notice
 * data in a pipe. */
#include <linux/fuse.h>
#include <stdlib.h>
#include <unistd.h>

#include "mount/fs/fs_impl.h"
#include "suite.h"

static int ends[2];
static atomic_uint looking;

static void setup(void)
{
	(void)unsetenv("REFRAIN_DISABLE");
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
}

static void teardown(void)
{
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void ask(struct fs_poll *p, uint32_t opcode, unsigned times)
{
	struct fuse_in_header in = {.opcode = opcode};
	struct fuse_buf buf = {.mem = &in, .size = sizeof(in)};

	while (times-- > 0)
		fs_poll_asked(p, &buf);
}

START_TEST(test_only_ioctls_make_a_thread_look)
{
	struct fs_poll p;

	fs_poll_init(&p, &looking);
	ck_assert(!fs_poll(&p, ends[0]));
	ask(&p, FUSE_READ, 100);
	ck_assert(!fs_poll(&p, ends[0]));
	ask(&p, FUSE_IOCTL, 100);
	ck_assert(fs_poll(&p, ends[0]));
}
END_TEST

START_TEST(test_ioctls_among_other_requests_do_not)
{
	struct fs_poll p;

	fs_poll_init(&p, &looking);
	ask(&p, FUSE_IOCTL, 100);
	for (int i = 0; i < 100; i++) {
		ask(&p, FUSE_READ, 1);
		ck_assert(!fs_poll(&p, ends[0]));
		ask(&p, FUSE_IOCTL, 1);
		ck_assert(!fs_poll(&p, ends[0]));
	}
}
END_TEST

START_TEST(test_a_thread_that_looks_in_vain_stops)
{
	struct fs_poll p;
	char byte;

	fs_poll_init(&p, &looking);
	ask(&p, FUSE_IOCTL, 100);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	ck_assert(!fs_poll(&p, ends[0]));
}
END_TEST

START_TEST(test_one_thread_always_sleeps)
{
	struct fs_poll p;

	fs_poll_init(&p, &looking);
	ask(&p, FUSE_IOCTL, 100);
	atomic_store(&looking, FS_WORKERS - 2);
	ck_assert(fs_poll(&p, ends[0]));
	ck_assert_uint_eq(looking, FS_WORKERS - 2);
	atomic_store(&looking, FS_WORKERS - 1);
	ck_assert(!fs_poll(&p, ends[0]));
	ck_assert_uint_eq(looking, FS_WORKERS - 1);
}
END_TEST

START_TEST(test_the_switch_turns_it_off)
{
	struct fs_poll p;

	ck_assert_int_eq(setenv("REFRAIN_DISABLE", "busy_poll", 1), 0);
	fs_poll_init(&p, &looking);
	ask(&p, FUSE_IOCTL, 100);
	ck_assert(!fs_poll(&p, ends[0]));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("poll");
	TCase *t = case_with(s, "poll", setup, teardown);

	tcase_add_test(t, test_only_ioctls_make_a_thread_look);
	tcase_add_test(t, test_ioctls_among_other_requests_do_not);
	tcase_add_test(t, test_a_thread_that_looks_in_vain_stops);
	tcase_add_test(t, test_one_thread_always_sleeps);
	tcase_add_test(t, test_the_switch_turns_it_off);
	return run_suite(s);
}

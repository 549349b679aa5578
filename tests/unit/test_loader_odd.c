/* SPDX-License-Identifier: MIT */
/*
 * Tests of examples that are not regular files or are too large: none of them
 * hangs the loader or takes its memory. Each test has a list of its own,
 * because a folder would not accept such files.
 */
#include "loader_fixture.h"
#include "loader_lease.h"

#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

#include "suite.h"

#define LISTED 40u

static char list[256];

static void write_list(void)
{
	char text[LISTED * 32];
	size_t n = 0;

	for (unsigned i = 0; i < LISTED; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"c%u/%04u.jpg\t%u\n", i % CLASSES, i, i % CLASSES);
	(void)snprintf(list, sizeof(list), "%s/list", top);
	write_file(list, text, n);
}

static struct refrain_config config_odd(void)
{
	struct refrain_config c = config_of();

	write_list();
	c.dataset = list;
	c.epochs = 2;
	c.max_damage = 1;
	return c;
}

/* Run the loader to the end. */
static void run_through(struct refrain_loader *l)
{
	const struct refrain_batch *b;
	int rc;

	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1)
		refrain_release(b);
	ck_assert_msg(rc == 0, "%d: %s", rc, refrain_message(l));
}

static void in_place_of(unsigned i, const char *target)
{
	char path[256];

	image_path(path, i);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink(target, path), 0);
}

static void make_special(unsigned i, mode_t type)
{
	char path[256];

	image_path(path, i);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mknod(path, type | 0666, 0), 0);
}

static void make_odd_ones(const char *tty)
{
	make_special(3, S_IFIFO);
	in_place_of(7, "/dev/zero");
	in_place_of(11, tty);
	in_place_of(13, "/dev/null");
	make_special(17, S_IFSOCK);
	in_place_of(19, ".");
}

#define ODD_ONES 6

/* Open a terminal. If a call hangs, the time limit of the test ends it. */
static void open_terminal(char *tty, size_t size)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(grantpt(fd), 0);
	ck_assert_int_eq(unlockpt(fd), 0);
	ck_assert_int_eq(ptsname_r(fd, tty, size), 0);
}

static void disable_ring(int i)
{
	if (i)
		ck_assert_int_eq(setenv("REFRAIN_DISABLE", "io_uring", 1), 0);
}

START_TEST(test_an_example_that_is_no_regular_file_is_damage)
{
	struct refrain_config c = config_odd();
	struct refrain_loader *l;
	struct refrain_stats st;
	char tty[128];

	disable_ring(_i % 2);
	open_terminal(tty, sizeof(tty));
	make_odd_ones(tty);
	c.policy = _i / 2 ? REFRAIN_ZERO_FILL : REFRAIN_SUBSTITUTE;
	l = open_loader(&c);
	run_through(l);
	st = stats_of(l);
	ck_assert_uint_eq(st.errors, 2 * ODD_ONES);
	ck_assert_uint_eq(st.errors_read, 2 * ODD_ONES);
	ck_assert_uint_eq(st.damaged_examples, ODD_ONES);
	ck_assert_uint_eq(
		_i / 2 ? st.zero_filled : st.substituted, 2 * ODD_ONES);
	ck_assert_int_eq(refrain_close(l), 0);
	(void)unsetenv("REFRAIN_DISABLE");
}
END_TEST

START_TEST(test_the_message_names_what_is_no_regular_file)
{
	struct refrain_config c = config_odd();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	int rc;

	make_special(3, S_IFIFO);
	c.policy = REFRAIN_FAIL;
	l = open_loader(&c);
	while ((rc = refrain_next(l, &b, WAIT_MS)) == 1)
		refrain_release(b);
	ck_assert_int_eq(rc, -ENXIO);
	ck_assert_msg(strstr(refrain_message(l), "c3/0003.jpg") &&
			strstr(refrain_message(l), "not a regular file"),
		"%s", refrain_message(l));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* A session leader without a terminal would get a terminal by opening one. */
START_TEST(test_a_terminal_does_not_become_that_of_the_process)
{
	struct refrain_config c = config_odd();
	struct refrain_loader *l;
	char tty[128];
	int status;
	pid_t pid;

	disable_ring(_i);
	open_terminal(tty, sizeof(tty));
	in_place_of(11, tty);
	pid = fork();
	if (pid == 0) {
		if (setsid() < 0)
			_exit(2);
		l = open_loader(&c);
		run_through(l);
		if (refrain_close(l) < 0)
			_exit(3);
		_exit(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	(void)unsetenv("REFRAIN_DISABLE");
}
END_TEST

/* Records are in a file, which the loader opens when it reads them. */
START_TEST(test_records_in_a_fifo_are_damage)
{
	static const char zeros[64];
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	char path[256];

	disable_ring(_i);
	(void)snprintf(path, sizeof(path), "%s/records", top);
	ck_assert_int_eq(mkdir(path, 0777), 0);
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/records/%u.bin", top, i);
		write_file(path, zeros, sizeof(zeros));
	}
	(void)snprintf(path, sizeof(path), "%s/records", top);
	c.dataset = path;
	c.source = REFRAIN_SOURCE_RAW;
	c.record_bytes = 4;
	c.batch = 4;
	c.batches_ahead = 1;
	c.reads_ahead = 1;
	c.flags = REFRAIN_FLAG_IN_ORDER;
	c.policy = REFRAIN_ZERO_FILL;
	c.max_damage = 1;
	l = open_loader(&c);
	(void)snprintf(path, sizeof(path), "%s/records/1.bin", top);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0666), 0);
	run_through(l);
	ck_assert_uint_eq(stats_of(l).errors_read, 16);
	ck_assert_int_eq(refrain_close(l), 0);
	(void)unsetenv("REFRAIN_DISABLE");
}
END_TEST

/* -- Sizes ----------------------------------------------------------------- */

/* the limit on encoded bytes for a small max_pixels */
#define LIMIT_BYTES ((off_t)64 << 20)

static struct refrain_config config_large(void)
{
	struct refrain_config c = config_odd();

	c.max_pixels = 10000;
	c.memory_bytes = UINT64_C(1) << 30;
	return c;
}

static void expect_one_too_large(const struct refrain_config *c, bool sized)
{
	struct refrain_loader *l = open_loader(c);
	struct refrain_stats st;

	run_through(l);
	st = stats_of(l);
	ck_assert_uint_eq(st.errors, c->epochs);
	ck_assert_uint_eq(st.errors_too_large, c->epochs);
	ck_assert_msg(strstr(refrain_message(l), "limit for an encoded image"),
		"%s", refrain_message(l));
	if (sized) /* no memory was allocated for it */
		ck_assert_uint_lt(st.memory_bytes_peak, LIMIT_BYTES / 2);
	ck_assert_int_eq(refrain_close(l), 0);
}

/* The file begins like an image, and the loader would decode it. */
START_TEST(test_an_encoded_image_has_a_limit)
{
	struct refrain_config c = config_large();
	struct refrain_loader *l;
	char path[256];

	disable_ring(_i);
	image_path(path, 5);
	ck_assert_int_eq(truncate(path, LIMIT_BYTES), 0);
	l = open_loader(&c);
	run_through(l);
	ck_assert_uint_eq(stats_of(l).errors, 0);
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(truncate(path, LIMIT_BYTES + 1), 0);
	expect_one_too_large(&c, true);
	(void)unsetenv("REFRAIN_DISABLE");
}
END_TEST

/* The sizes in an index are only hints. */
START_TEST(test_the_limit_holds_whatever_an_index_says)
{
	static const char *const sizes[] = {"0", "10", "99999999999"};
	struct refrain_config c = config_large();
	char path[256], text[4096];
	size_t n;

	n = (size_t)snprintf(text, sizeof(text),
		"# refrain index 1: path, size, mtime, label\n");
	for (unsigned i = 0; i < LISTED; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"c%u/%04u.jpg\t%s\t0\tc%u\n", i % CLASSES, i,
			i == 5 ? sizes[_i] : "1000", i % CLASSES);
	write_file(list, text, n);
	image_path(path, 5);
	ck_assert_int_eq(truncate(path, LIMIT_BYTES + 1), 0);
	expect_one_too_large(&c, false);
}
END_TEST

START_TEST(test_a_member_of_a_tar_has_the_same_limit)
{
	struct refrain_config c = config_large();
	char path[256], command[512];

	image_path(path, 5);
	ck_assert_int_eq(truncate(path, LIMIT_BYTES + 1), 0);
	(void)snprintf(command, sizeof(command),
		"tar --format=ustar -C %s -cf %s/c5.tar c5", top, top);
	ck_assert_int_eq(system(command), 0);
	(void)snprintf(path, sizeof(path), "%s/c5.tar", top);
	c.dataset = path;
	expect_one_too_large(&c, true);
}
END_TEST

/* -- Leases ---------------------------------------------------------------- */

static void *give_up_later(void *lease)
{
	struct pollfd none = {.fd = -1};

	(void)poll(&none, 1, 20);
	lease_end(*(int *)lease);
	return NULL;
}

/* The process that has a lease on the file is asked to give it up; that is not
 * damage. */
START_TEST(test_a_file_with_a_lease_is_waited_for)
{
	struct refrain_config c = config_odd();
	struct refrain_loader *l;
	pthread_t thread;
	char path[256];
	int lease;

	disable_ring(_i);
	image_path(path, 5);
	lease = lease_begin(path);
	l = open_loader(&c);
	ck_assert_int_eq(
		pthread_create(&thread, NULL, give_up_later, &lease), 0);
	run_through(l);
	ck_assert_uint_eq(stats_of(l).errors, 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(refrain_close(l), 0);
	(void)unsetenv("REFRAIN_DISABLE");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_odd");
	TCase *tc = case_with(s, "odd", fixture_make, fixture_remove);

	tcase_add_loop_test(
		tc, test_an_example_that_is_no_regular_file_is_damage, 0, 4);
	tcase_add_test(tc, test_the_message_names_what_is_no_regular_file);
	tcase_add_loop_test(
		tc, test_a_terminal_does_not_become_that_of_the_process, 0, 2);
	tcase_add_loop_test(tc, test_records_in_a_fifo_are_damage, 0, 2);
	tcase_add_loop_test(tc, test_an_encoded_image_has_a_limit, 0, 2);
	tcase_add_loop_test(
		tc, test_the_limit_holds_whatever_an_index_says, 0, 3);
	tcase_add_test(tc, test_a_member_of_a_tar_has_the_same_limit);
	tcase_add_loop_test(tc, test_a_file_with_a_lease_is_waited_for, 0, 2);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

/* SPDX-License-Identifier: MIT */
/* Tests of src/base/uring: what is opened, wherever it is mounted. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/uring.h"
#include "suite.h"

#define DEPTH 4

struct waiter {
	struct uring_op op;
	pthread_mutex_t lock;
	pthread_cond_t done_c;
	bool done;
	int res;
};

static void on_done(struct uring_op *op, int res)
{
	struct waiter *w = CONTAINER_OF(op, struct waiter, op);

	pthread_mutex_lock(&w->lock);
	w->done = true;
	w->res = res;
	pthread_cond_signal(&w->done_c);
	pthread_mutex_unlock(&w->lock);
}

/* The result of an open through a ring of its own. */
static int open_through(const char *dir, const char *path, int flags)
{
	struct waiter w = {.op.done = on_done,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.done_c = PTHREAD_COND_INITIALIZER};
	int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct uring *u;

	ck_assert_int_ge(dir_fd, 0);
	ck_assert_int_eq(uring_new(&u, DEPTH, 1), 0);
	uring_open(u, &w.op, dir_fd, path, flags);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.done_c, &w.lock);
	pthread_mutex_unlock(&w.lock);
	ck_assert(uring_free(u, 10 * NS_PER_S));
	(void)close(dir_fd); /* O_PATH */
	return w.res;
}

static void assert_opens(const char *dir, const char *path, int flags)
{
	int fd = open_through(dir, path, flags);

	ck_assert_msg(fd >= 0, "'%s' in '%s': %d", path, dir, fd);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	ck_assert_int_eq(close(fd), 0);
}

static void assert_another_file_system(const char *a, const char *b)
{
	struct stat of_a, of_b;

	ck_assert_int_eq(stat(a, &of_a), 0);
	ck_assert_int_eq(stat(b, &of_b), 0);
	ck_assert(of_a.st_dev != of_b.st_dev);
}

START_TEST(test_uring_opens_what_lies_on_another_file_system)
{
	assert_another_file_system("/", "/proc");
	assert_opens("/", "proc/version", O_RDONLY);
	assert_opens("/", "proc/version", O_RDONLY | O_NOFOLLOW);
	assert_opens("/proc", "version", O_RDONLY | O_NOFOLLOW);
}
END_TEST

START_TEST(test_uring_follows_no_link_out_of_a_directory_unless_it_may)
{
	assert_opens("/proc/self", "root/proc/version", O_RDONLY);
	ck_assert_int_lt(open_through("/proc/self", "root/proc/version",
				 O_RDONLY | O_NOFOLLOW),
		0);
	ck_assert_int_lt(
		open_through("/proc", "../proc/version", O_RDONLY | O_NOFOLLOW),
		0);
}
END_TEST

START_TEST(test_uring_says_that_a_name_does_not_exist)
{
	ck_assert_int_eq(open_through("/", "proc/none", O_RDONLY), -ENOENT);
	ck_assert_int_eq(open_through("/proc", "none", O_RDONLY), -ENOENT);
}
END_TEST

static void ignore_done(struct uring_op *op, int res)
{
	(void)op;
	(void)res;
}

struct blocker {
	struct uring_op op;
	int fd; /* the thread waits until its other end is closed */
};

static void block(struct uring_op *op, int res)
{
	char byte;

	(void)res;
	ck_assert_int_eq(
		read(CONTAINER_OF(op, struct blocker, op)->fd, &byte, 1), 0);
}

/* The only thread is busy while the close is cancelled. */
START_TEST(test_uring_closes_a_file_although_that_is_cancelled)
{
	struct blocker b = {.op.done = block};
	struct uring_op op = {.done = ignore_done};
	int ends[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct uring *u;
	char byte = 0;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(uring_new_threads(&u, 1), 0);
	b.fd = ends[0];
	uring_read(u, &b.op, fd, &byte, 1, 0);
	uring_close(u, &op, fd);
	uring_cancel(u, &op);
	ck_assert_int_eq(close(ends[1]), 0);
	ck_assert(uring_free(u, 10 * NS_PER_S));
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(close(ends[0]), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("uring");
	TCase *t = case_of(s, "uring");

	tcase_add_test(t, test_uring_opens_what_lies_on_another_file_system);
	tcase_add_test(
		t, test_uring_follows_no_link_out_of_a_directory_unless_it_may);
	tcase_add_test(t, test_uring_says_that_a_name_does_not_exist);
	tcase_add_test(t, test_uring_closes_a_file_although_that_is_cancelled);
	return run_suite(s);
}

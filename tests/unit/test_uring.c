/* SPDX-License-Identifier: MIT */
/* Tests of common/base/uring: opening files, wherever they are mounted. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/uring.h"
#include "suite.h"

#define DEPTH 4
#define CLOSES 200

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

static void await(struct waiter *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->done)
		pthread_cond_wait(&w->done_c, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

/* Returns the result of an open through a new ring. */
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
	await(&w);
	ck_assert(uring_free(u, 10 * NS_PER_S));
	(void)close(dir_fd); /* nothing can be lost: the descriptor is O_PATH */
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
	int fd; /* the job waits until the other end is closed */
};

static void block(struct uring_op *op, int res)
{
	char byte;

	(void)res;
	ck_assert_int_eq(
		read(CONTAINER_OF(op, struct blocker, op)->fd, &byte, 1), 0);
}

/* The only thread is busy when the close is cancelled. */
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

/* `tick` ends at once on the ring's thread, which starts a close and the next
 * tick together, and then cancels the close. */
struct closes {
	struct waiter w; /* waits until all closes have begun */
	struct uring_op tick, close[CLOSES];
	struct uring *u;
	int zero, fd[CLOSES];
	unsigned begun, cancelled;
	char byte;
};

static void next_close(struct uring_op *op, int res)
{
	struct closes *c = CONTAINER_OF(op, struct closes, tick);

	ck_assert_int_eq(res, 1);
	if (c->begun > c->cancelled) {
		uring_cancel(c->u, &c->close[c->cancelled++]);
	} else {
		uring_close(c->u, &c->close[c->begun], c->fd[c->begun]);
		c->begun++;
	}
	if (c->cancelled < CLOSES)
		uring_read(c->u, &c->tick, c->zero, &c->byte, 1, 0);
	else
		on_done(&c->w.op, 0);
}

/* The kernel closes a message queue on another thread, as it does with a file
 * that has data to flush. */
START_TEST(test_uring_closes_files_that_the_kernel_was_about_to_close)
{
	static struct closes c = {.w.lock = PTHREAD_MUTEX_INITIALIZER,
		.w.done_c = PTHREAD_COND_INITIALIZER,
		.tick.done = next_close};
	char name[64];

	(void)snprintf(name, sizeof(name), "/test_uring.%d", (int)getpid());
	c.zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(c.zero, 0);
	for (unsigned i = 0; i < CLOSES; i++) {
		c.fd[i] = mq_open(name, O_RDONLY | O_CREAT, 0600, NULL);
		c.close[i].done = ignore_done;
		if (c.fd[i] < 0 && errno == ENOSYS)
			return;
		ck_assert_int_ge(c.fd[i], 0);
	}
	ck_assert_int_eq(mq_unlink(name), 0);
	ck_assert_int_eq(uring_new(&c.u, 2 * CLOSES, 1), 0);
	uring_read(c.u, &c.tick, c.zero, &c.byte, 1, 0);
	await(&c.w);
	ck_assert(uring_free(c.u, 10 * NS_PER_S));
	for (unsigned i = 0; i < CLOSES; i++)
		ck_assert_int_eq(fcntl(c.fd[i], F_GETFD), -1);
	ck_assert_int_eq(close(c.zero), 0);
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
	tcase_add_test(
		t, test_uring_closes_files_that_the_kernel_was_about_to_close);
	return run_suite(s);
}

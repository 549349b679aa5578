/* SPDX-License-Identifier: MIT */
/*
 * Tests of common/base/send_fds and notifier: descriptors that are passed, and
 * the process that writes notifications. A socket takes the place of the
 * connection to the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/notifier.h"
#include "common/base/send_fds.h"
#include "suite.h"

static void make_pair(int end[2])
{
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end), 0);
}

/* -- Descriptors ----------------------------------------------------------- */

START_TEST(test_fds_arrive_with_their_message)
{
	int end[2], pipes[2];
	struct got_fds got;
	char text[8];

	make_pair(end);
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(fds_send(end[0], "two", 4, pipes, 2, 0), 4);
	ck_assert_int_eq(fds_receive(end[1], text, sizeof(text), &got, 0), 4);
	ck_assert_str_eq(text, "two");
	ck_assert_uint_eq(got.n, 2);
	ck_assert(!got.cut);
	ck_assert_int_eq(fcntl(got.fd[0], F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(write(got.fd[1], "x", 1), 1);
	ck_assert_int_eq(read(pipes[0], text, 1), 1);
	fds_close(&got, 0);
	ck_assert_int_eq(got.n, 0);
}
END_TEST

START_TEST(test_fds_are_refused_if_there_are_too_many)
{
	int end[2], many[SEND_FDS_MAX + 1] = {0};

	make_pair(end);
	ck_assert_int_eq(
		fds_send(end[0], "", 1, many, SEND_FDS_MAX + 1, 0), -EINVAL);
}
END_TEST

START_TEST(test_fds_say_that_a_message_was_cut)
{
	struct got_fds got;
	char text[2];
	int end[2];

	make_pair(end);
	ck_assert_int_eq(fds_send(end[0], "long", 4, end, 1, 0), 4);
	ck_assert_int_eq(fds_receive(end[1], text, sizeof(text), &got, 0), 2);
	ck_assert(got.cut);
	fds_close(&got, 0);
}
END_TEST

START_TEST(test_fds_name_the_sender)
{
	struct got_fds got;
	int end[2];
	char c;

	ck_assert_int_eq(notifier_pair(end), 0);
	ck_assert_int_eq(fds_send(end[1], "", 1, NULL, 0, 0), 1);
	ck_assert_int_eq(fds_receive(end[0], &c, 1, &got, 0), 1);
	ck_assert_int_eq(got.pid, getpid());
	ck_assert_uint_eq(got.uid, getuid());
}
END_TEST

/* -- The process ------------------------------------------------------------
 */

struct notifier_run {
	int socket, kernel; /* the other ends of the process's sockets */
	pid_t pid;
};

static int answer_of(const struct notifier_run *r)
{
	struct got_fds got;
	int answer;

	ck_assert_int_eq(
		fds_receive(r->socket, &answer, sizeof(answer), &got, 0),
		sizeof(answer));
	ck_assert_int_eq(got.pid, r->pid);
	return answer;
}

static int ask(const struct notifier_run *r, const void *bytes, size_t n)
{
	ck_assert_int_eq(fds_send(r->socket, bytes, n, NULL, 0, 0), n);
	return answer_of(r);
}

/* Start the process. It has no connection yet. */
static struct notifier_run begin(int *connection)
{
	struct notifier_run r;
	int end[2], kernel[2];

	ck_assert_int_eq(notifier_pair(end), 0);
	make_pair(kernel);
	r.pid = fork();
	if (r.pid == 0)
		notifier_run(end[1], NOTIFIER_COMM);
	ck_assert_int_gt(r.pid, 0);
	(void)close(end[1]);
	r.socket = end[0];
	r.kernel = kernel[0];
	*connection = kernel[1];
	ck_assert_int_eq(answer_of(&r), 0);
	return r;
}

static struct notifier_run begin_connected(void)
{
	int connection;
	struct notifier_run r = begin(&connection);

	ck_assert_int_eq(fds_send(r.socket, "", 1, &connection, 1, 0), 1);
	(void)close(connection);
	ck_assert_int_eq(answer_of(&r), 0);
	return r;
}

static void ends(const struct notifier_run *r)
{
	int status;

	(void)close(r->socket);
	ck_assert_int_eq(waitpid(r->pid, &status, 0), r->pid);
	ck_assert_int_eq(status, 0);
}

static const struct fuse_out_header forget = {
	.len = sizeof(forget), .error = FUSE_NOTIFY_INVAL_INODE};

START_TEST(test_notifier_writes_what_it_is_told)
{
	struct notifier_run r = begin_connected();
	struct fuse_out_header got;

	ck_assert_int_eq(ask(&r, &forget, sizeof(forget)), 0);
	ck_assert_int_eq(read(r.kernel, &got, sizeof(got)), sizeof(got));
	ck_assert_int_eq(got.error, FUSE_NOTIFY_INVAL_INODE);
	(void)close(r.kernel);
	ck_assert_int_eq(ask(&r, &forget, sizeof(forget)), -EPIPE);
	ends(&r);
}
END_TEST

/* The process writes only notifications, so nobody can use it to answer
 * requests of readers. */
START_TEST(test_notifier_writes_nothing_but_notifications)
{
	struct notifier_run r = begin_connected();
	struct fuse_out_header answer = forget, resend = forget, cut = forget;
	char byte;

	answer.unique = 2;
	resend.error = 7;
	cut.len++;
	ck_assert_int_eq(ask(&r, &answer, sizeof(answer)), -EINVAL);
	ck_assert_int_eq(ask(&r, &resend, sizeof(resend)), -EINVAL);
	ck_assert_int_eq(ask(&r, &cut, sizeof(cut)), -EINVAL);
	ck_assert_int_eq(ask(&r, "x", 1), -EINVAL);
	ck_assert_int_eq(recv(r.kernel, &byte, 1, MSG_DONTWAIT), -1);
	ends(&r);
}
END_TEST

START_TEST(test_notifier_has_no_other_descriptor)
{
	int connection, pipes[2];
	struct notifier_run r;
	char byte;

	ck_assert_int_eq(pipe(pipes), 0);
	r = begin(&connection);
	(void)close(pipes[1]);
	/* the process has closed its ends */
	ck_assert_int_eq(read(pipes[0], &byte, 1), 0);
	ck_assert_int_eq(ask(&r, &forget, sizeof(forget)), -EBADF);
	ends(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("notifier");
	TCase *t = case_of(s, "notifier");

	/* the daemon ignores this signal, too */
	(void)signal(SIGPIPE, SIG_IGN);
	tcase_add_test(t, test_fds_arrive_with_their_message);
	tcase_add_test(t, test_fds_are_refused_if_there_are_too_many);
	tcase_add_test(t, test_fds_say_that_a_message_was_cut);
	tcase_add_test(t, test_fds_name_the_sender);
	tcase_add_test(t, test_notifier_writes_what_it_is_told);
	tcase_add_test(t, test_notifier_writes_nothing_but_notifications);
	tcase_add_test(t, test_notifier_has_no_other_descriptor);
	return run_suite(s);
}

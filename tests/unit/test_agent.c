/* SPDX-License-Identifier: MIT */
/*
 * Tests of mount/fs/agent: a process that waits in the kernel for the daemon is
 * used, replaced and given up. A socket takes the place of the connection to
 * the kernel.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/notifier.h"
#include "mount/fs/agent.h"
#include "suite.h"

static const struct fuse_out_header forget = {
	.len = sizeof(forget), .error = FUSE_NOTIFY_INVAL_INODE};
static const struct agent_message message = {&forget, sizeof(forget), -1};

/* The agent, the socket that stands for the kernel, and the processes. */
struct fixture {
	struct agent *agent;
	int kernel, connection;
	_Atomic pid_t pid; /* the last process; 0: there is none */
	_Atomic int spare; /* number of processes that can still be started */
	_Atomic int replaced, lost;
	struct event_sink sink;
};

static int start_process(struct fixture *f)
{
	int end[2];

	ck_assert_int_eq(notifier_pair(end), 0);
	f->pid = fork();
	if (f->pid == 0)
		notifier_run(end[1], NOTIFIER_COMM);
	ck_assert_int_gt(f->pid, 0);
	(void)close(end[1]);
	return end[0];
}

static int again(void *arg)
{
	struct fixture *f = arg;

	(void)kill(f->pid, SIGKILL);
	(void)waitpid(f->pid, NULL, 0);
	f->pid = 0;
	return f->spare-- > 0 ? start_process(f) : -1;
}

static void report(void *arg, const struct event *e)
{
	struct fixture *f = arg;

	ck_assert_str_eq(e->dir, "/mnt");
	if (e->kind == EVENT_NOTIFIER_REPLACED)
		atomic_fetch_add(&f->replaced, 1);
	else
		atomic_fetch_add(&f->lost, 1);
}

static void begin(struct fixture *f, int spare)
{
	struct agent_config config = {
		.replaced = EVENT_NOTIFIER_REPLACED,
		.lost = EVENT_NOTIFIER_LOST,
		.again = again,
		.arg = f,
		.events = &f->sink,
		.mountpoint = "/mnt",
	};
	struct error err;
	int kernel[2];

	*f = (struct fixture){.spare = spare, .sink = {report, f}};
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, kernel),
		0);
	f->kernel = kernel[0];
	f->connection = kernel[1];
	ck_assert_int_eq(
		agent_new(&f->agent, &config, start_process(f), &err), 0);
	agent_connect(f->agent, f->connection);
}

static void end(struct fixture *f)
{
	agent_free(f->agent);
	if (f->pid > 0) {
		(void)kill(f->pid, SIGCONT);
		(void)waitpid(f->pid, NULL, 0);
	}
	(void)close(f->kernel);
	(void)close(f->connection);
}

/* Returns the number of notifications that the kernel has received. */
static unsigned got(const struct fixture *f)
{
	struct fuse_out_header head;
	unsigned n = 0;

	while (recv(f->kernel, &head, sizeof(head), MSG_DONTWAIT) ==
		sizeof(head))
		n++;
	return n;
}

static void wait_for(const _Atomic int *count, int value)
{
	while (atomic_load(count) < value)
		(void)poll(NULL, 0, 1);
}

START_TEST(test_agent_has_things_done)
{
	const struct agent_message two[] = {message, message};
	struct fixture f;

	begin(&f, 0);
	ck_assert_int_eq(agent_do(f.agent, two, 2, NULL), 0);
	ck_assert_uint_eq(got(&f), 2);
	ck_assert_int_eq(f.replaced + f.lost, 0);
	end(&f);
}
END_TEST

START_TEST(test_agent_returns_the_last_answer)
{
	const struct agent_message bad = {"x", 1, -1};
	struct fixture f;

	begin(&f, 0);
	ck_assert_int_eq(agent_do(f.agent, &bad, 1, NULL), -EINVAL);
	ck_assert_int_eq(f.replaced + f.lost, 0);
	end(&f);
}
END_TEST

/* The agent replaces the process even if it has no task for it at the time. */
START_TEST(test_agent_replaces_a_dead_process_at_once)
{
	struct fixture f;

	begin(&f, 1);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, NULL), 0);
	ck_assert_int_eq(kill(f.pid, SIGKILL), 0);
	wait_for(&f.replaced, 1);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, NULL), 0);
	ck_assert_uint_eq(got(&f), 2);
	ck_assert_int_eq(f.replaced, 1);
	end(&f);
}
END_TEST

START_TEST(test_agent_says_at_once_that_a_process_is_lost)
{
	struct fixture f;

	begin(&f, 0);
	ck_assert_int_eq(kill(f.pid, SIGKILL), 0);
	wait_for(&f.lost, 1);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, NULL), -ESHUTDOWN);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, NULL), -ESHUTDOWN);
	/* the agent asks for another process later */
	ck_assert_int_eq(f.lost, 1);
	end(&f);
}
END_TEST

START_TEST(test_agent_replaces_a_stopped_process)
{
	struct fixture f;

	begin(&f, 1);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, NULL), 0);
	ck_assert_int_eq(kill(f.pid, SIGSTOP), 0);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, NULL), 0);
	ck_assert_uint_eq(got(&f), 2);
	ck_assert_int_eq(f.replaced, 1);
	end(&f);
}
END_TEST

START_TEST(test_agent_does_not_wait_for_a_stopped_process_at_the_end)
{
	atomic_bool quit = true;
	struct fixture f;

	begin(&f, 1);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, NULL), 0);
	ck_assert_int_eq(kill(f.pid, SIGSTOP), 0);
	ck_assert_int_eq(agent_do(f.agent, &message, 1, &quit), -ECANCELED);
	ck_assert_int_eq(f.replaced + f.lost, 0);
	end(&f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("agent");
	TCase *t = case_of(s, "agent");

	/* the daemon ignores this signal, too */
	(void)signal(SIGPIPE, SIG_IGN);
	tcase_add_test(t, test_agent_has_things_done);
	tcase_add_test(t, test_agent_returns_the_last_answer);
	tcase_add_test(t, test_agent_replaces_a_dead_process_at_once);
	tcase_add_test(t, test_agent_says_at_once_that_a_process_is_lost);
	tcase_add_test(t, test_agent_replaces_a_stopped_process);
	tcase_add_test(
		t, test_agent_does_not_wait_for_a_stopped_process_at_the_end);
	return run_suite(s);
}

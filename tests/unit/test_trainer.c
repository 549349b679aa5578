/* SPDX-License-Identifier: MIT */
/* Tests of the processes of an analysed command: which processes belong to a
 * command, and their processor time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/study/busy_process_impl.h"
#include "suite.h"

#define BURN "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo >"

static volatile sig_atomic_t stop;
static char done[64];

static void start(struct trainer *t, const char *script)
{
	char sh[] = "sh", option[] = "-c", text[256];
	char *words[] = {sh, option, text, done, NULL};
	struct analyze_config config = {.command = words, .stop = &stop};
	struct error err = {""};

	(void)snprintf(text, sizeof(text), "%s", script);
	(void)snprintf(done, sizeof(done), "%s/done", test_dir());
	(void)unlink(done);
	*t = (struct trainer){.pid = 0};
	ck_assert_msg(trainer_start(t, &config, &err) == 0, "%s", err.msg);
}

/* Check that the used time never decreases, even after a process has ended. */
static void check_cpu(const char *script)
{
	struct trainer t;
	double was = 0;

	start(&t, script);
	for (unsigned after = 0; after < 20;) {
		double now = trainer_cpu_s(&t);

		ck_assert(!trainer_ended(&t));
		ck_assert_double_ge(now, was);
		was = now;
		after += access(done, F_OK) == 0;
		(void)usleep(5000);
	}
	trainer_stop(&t);
	ck_assert_double_gt(was, 0.05);
}

START_TEST(test_time_of_a_process_that_was_left_counts_after_its_end)
{
	check_cpu("(sh -c '" BURN "$0' $0 &); exec sleep 600");
}
END_TEST

START_TEST(test_time_of_a_process_that_is_not_waited_for_counts)
{
	check_cpu("sh -c '" BURN "$0' $0 & exec sleep 600");
}
END_TEST

/* Returns the most time that one process had used when all together had used
 * 0.1 s. */
static double most_used_s(const char *script)
{
	struct busy was = {NULL}, now = {NULL};
	struct trainer t;
	double most;

	start(&t, script);
	busy_look(&was, &t);
	while (trainer_cpu_s(&t) < 0.1)
		(void)usleep(5000);
	busy_look(&now, &t);
	trainer_stop(&t);
	most = busy_most_s(&was, &now);
	busy_release(&was);
	busy_release(&now);
	return most;
}

START_TEST(test_the_busiest_process_is_one_that_reads_or_prepares)
{
	ck_assert_double_gt(most_used_s("while :; do :; done"), 0.05);
	ck_assert_double_gt(
		most_used_s("while :; do :; done & exec sleep 600"), 0.05);
	/* The first thread waits for its device. */
	ck_assert_double_lt(
		most_used_s("sleep 600 & while :; do :; done"), 0.05);
}
END_TEST

/* Start a child that belongs to no command. When told to, it starts a process
 * and ends. */
static pid_t start_older(int go, int out)
{
	pid_t self = getpid(), pid = fork(), left;
	char c;

	if (pid != 0)
		return pid;
	(void)!read(go, &c, 1);
	left = fork();
	if (left > 0)
		_exit(0);
	while (getppid() != self)
		(void)usleep(1000);
	left = getpid();
	(void)!write(out, &left, sizeof(left));
	for (;;)
		(void)pause();
}

START_TEST(test_a_process_of_an_older_child_is_left_alone)
{
	int go[2], out[2];
	struct trainer t;
	pid_t older, left;

	ck_assert(pipe(go) == 0 && pipe(out) == 0);
	older = start_older(go[0], out[1]);

	start(&t, "exec sleep 600");
	ck_assert_int_eq(write(go[1], "", 1), 1);
	ck_assert_int_eq(waitpid(older, NULL, 0), older);
	ck_assert_int_eq(read(out[0], &left, sizeof(left)), sizeof(left));
	trainer_stop(&t);
	ck_assert_int_eq(waitpid(left, NULL, WNOHANG), 0);
	(void)kill(left, SIGKILL);
	ck_assert_int_eq(waitpid(left, NULL, 0), left);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trainer");
	TCase *t = case_of(s, "trainer");

	tcase_add_test(
		t, test_time_of_a_process_that_was_left_counts_after_its_end);
	tcase_add_test(t, test_time_of_a_process_that_is_not_waited_for_counts);
	tcase_add_test(
		t, test_the_busiest_process_is_one_that_reads_or_prepares);
	tcase_add_test(t, test_a_process_of_an_older_child_is_left_alone);
	return run_suite(s);
}

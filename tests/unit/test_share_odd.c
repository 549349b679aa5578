/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/loader/share: members that are slow, silent or dead or send
 * arbitrary messages, and hosts that hang, lack descriptors or follow another
 * host.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/proc.h"
#include "share_fixture.h"

#define ANYTHING 10000 /* number of messages */

/* -- Members that are slow ------------------------------------------------- */

START_TEST(test_a_member_that_is_parted_keeps_what_it_has_taken)
{
	struct joined j[2];
	struct share_msg msg;
	const char *taken;
	struct scene s;

	scene_begin(&s, 40, 2);
	join_at(&s, &j[0], 1);
	join_solo(&s, &j[1], 2);
	ck_assert_uint_eq(take_batch(&j[0]), 0);
	ck_assert_uint_eq(take_batch(&j[1]), 0);
	give_back(&j[0], 0);
	give_back(&j[1], 0);
	for (uint64_t step = 1; step <= SLOTS; step++) {
		ck_assert_uint_eq(take_batch(&j[0]), step);
		give_back(&j[0], step);
	}
	ck_assert_int_eq(next_message(&j[1], &msg, WAIT_MS), 1);
	ck_assert_uint_eq(msg.batch.step, 1);
	taken = (const char *)j[1].area.base + msg.batch.slot * SLOT_BYTES;
	say(&j[1], SHARE_TAKE, 1);
	ck_assert_uint_eq(j[1].area.words->parted[j[1].welcome.place], 0);
	say(&j[0], SHARE_WAIT, SLOTS + 1);
	for (uint64_t step = SLOTS + 1; step < 20; step++) {
		ck_assert_uint_eq(take_batch(&j[0]), step);
		give_back(&j[0], step);
	}
	ck_assert_uint_eq(j[1].area.words->parted[j[1].welcome.place], 1);
	/* The other members hold slots, but none of them was the slot of step
	 * 1. */
	ck_assert_int_eq(*taken, 1);
	do
		ck_assert_int_eq(next_message(&j[1], &msg, WAIT_MS), 1);
	while (msg.type == SHARE_BATCH);
	ck_assert_int_eq(msg.type, SHARE_ALONE);
	ck_assert_uint_eq(msg.step.step, 2);
	/* At first the file does not exist, and later it does. */
	give_back(&j[1], 1);
	say(&j[1], SHARE_ALONE, 3);
	ck_assert_int_eq(next_message(&j[1], &msg, 10), 0);
	say(&j[1], SHARE_ALONE, 22);
	ck_assert_uint_eq(take_batch(&j[0]), 20);
	give_back(&j[0], 20);
	ck_assert_uint_eq(take_batch(&j[0]), 21);
	give_back(&j[0], 21);
	ck_assert_uint_eq(take_batch(&j[1]), 22);
	ck_assert_uint_eq(j[1].area.words->parted[j[1].welcome.place], 0);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

/* -- Too many -------------------------------------------------------------- */

START_TEST(test_who_says_nothing_takes_nobodys_place)
{
	struct share_link silent[SHARE_MEMBERS_MAX];
	struct error err = {""};
	struct share_msg msg;
	struct joined j[2];
	struct scene s;

	scene_begin(&s, 20, 2);
	join_at(&s, &j[0], 1);
	for (int i = 0; i < SHARE_MEMBERS_MAX; i++)
		ck_assert_int_eq(share_link_open(&silent[i], s.place, &err), 0);
	join_at(&s, &j[1], 2);
	ck_assert_uint_eq(take_batch(&j[0]), 0);
	ck_assert_uint_eq(take_batch(&j[1]), 0);
	/* A member that had to give way finds its connection closed. */
	ck_assert_int_eq(
		share_link_recv(&silent[0], &msg, &(int){-1}, WAIT_MS), -EPIPE);
	for (int i = 0; i < SHARE_MEMBERS_MAX; i++)
		share_link_close(&silent[i]);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

/* Returns the processor time of the host's thread. */
static uint64_t host_cpu_ns(const struct scene *s)
{
	struct timespec t;
	clockid_t clock;

	ck_assert_int_eq(pthread_getcpuclockid(s->host->thread, &clock), 0);
	ck_assert_int_eq(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Ask the host from another process, which has descriptors left. */
static pid_t ask_from_outside(const struct scene *s, const struct rlimit *limit)
{
	struct share_msg msg = {.type = SHARE_ASK};
	struct share_link link;
	struct error err = {""};
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (setrlimit(RLIMIT_NOFILE, limit) < 0 ||
		share_link_open(&link, s->place, &err) < 0 ||
		share_link_send(&link, &msg) < 0 ||
		share_link_recv(&link, &msg, &(int){-1}, WAIT_MS) != 1)
		_exit(1);
	_exit(0);
}

START_TEST(test_a_host_without_descriptors_does_not_spin)
{
	struct rlimit limit, none;
	uint64_t cpu_ns;
	struct scene s;
	int status;
	pid_t pid;

	scene_begin(&s, 20, 1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	pid = ask_from_outside(&s, &limit);
	cpu_ns = host_cpu_ns(&s);
	/* wait for the time in which the host could use processor time */
	(void)poll(NULL, 0, 500);
	ck_assert_uint_lt(host_cpu_ns(&s) - cpu_ns, 100 * NS_PER_MS);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	scene_end(&s);
}
END_TEST

static int begun_pipe[2], hanging_pipe[2];

static int begin_hanging(
	void *arg, uint64_t step, struct share_stream *out, struct error *err)
{
	char byte = 'b';

	ck_assert_int_eq(write(begun_pipe[1], &byte, 1), 1);
	ck_assert_int_eq(read(hanging_pipe[0], &byte, 1), 1);
	return begin_made_up(arg, step, out, err);
}

START_TEST(test_a_host_that_hangs_is_left_behind_within_a_second)
{
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_hanging,
			.epoch_from = tenth_from},
		.jobs = 1,
	};
	struct error err = {""};
	struct pollfd p = {.events = POLLIN};
	struct joined j;
	struct scene s;
	uint64_t began_ns;
	char byte;

	ck_assert_int_eq(pipe(begun_pipe), 0);
	ck_assert_int_eq(pipe(hanging_pipe), 0);
	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	config.place = s.place;
	config.ops.arg = &s.m;
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	join_at(&s, &j, 1);
	ck_assert_int_eq(read(begun_pipe[0], &byte, 1), 1);
	/* Stopping takes 0.95 s; more on a busy machine, but not without a
	 * limit. */
	began_ns = clock_now_ns();
	ck_assert_int_eq(share_host_stop(s.host), 1);
	ck_assert_uint_lt(
		clock_now_ns() - began_ns, 5 * NS_PER_S * TIME_LIMIT_FACTOR);
	ck_assert_int_eq(write(hanging_pipe[1], "x", 1), 1);
	p.fd = share_host_done_fd(s.host);
	ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
	part(&j);
	scene_end(&s);
	(void)close(begun_pipe[0]);
	(void)close(begun_pipe[1]);
	(void)close(hanging_pipe[0]);
	(void)close(hanging_pipe[1]);
}
END_TEST

START_TEST(test_the_next_host_waits_for_the_members_of_the_one_before)
{
	struct share_view before = {.jobs_n = 2, .begun = 1};
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from},
		.before = &before,
		.begun = true,
		.generation = 1,
	};
	struct joined j[2];
	char who[32];
	struct share_msg hello = hello_of(11, 5), msg;
	struct error err = {""};
	struct scene s;

	/* One member is alive. The number of the other member's process belongs
	 * to another process now. */
	for (unsigned i = 0; i < 2; i++)
		before.jobs[i] = (struct share_job){.id = 10 + i,
			.pid = (uint32_t)getpid(),
			.born = proc_born(getpid()) + (i == 0)};
	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	config.place = s.place;
	config.ops.arg = &s.m;
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	hello.hello.wish = SHARE_WISH_AGAIN;
	hello.hello.id = 12; /* the id of an unknown member */
	hello.hello.step = 6;
	ck_assert_int_eq(join_with(&s, &j[0], &hello.hello, &err), 0);
	ck_assert_uint_eq(j[0].welcome.generation, 1);
	ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	say(&j[0], SHARE_ASK, 0);
	do
		ck_assert_int_eq(
			share_link_recv(&j[0].link, &msg, &(int){-1}, WAIT_MS),
			1);
	while (msg.type != SHARE_VIEW || !msg.view.missing);
	(void)snprintf(who, sizeof(who), "process %d", (int)getpid());
	ck_assert_str_eq(msg.view.text, who);
	hello.hello.id = 11;
	hello.hello.step = 5;
	ck_assert_int_eq(join_with(&s, &j[1], &hello.hello, &err), 0);
	ck_assert_uint_eq(take_batch(&j[1]), 5);
	ck_assert_uint_eq(take_batch(&j[1]), 6);
	ck_assert_uint_eq(take_batch(&j[0]), 6);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

/* -- Messages of any kind -------------------------------------------------- */

static uint32_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 1664525 + 1013904223;
	return (drawn >> 8) % below;
}

/* Returns a message that a member could send, for a step near those of the run.
 */
static struct share_msg message_of_any_type(void)
{
	static const enum share_type types[] = {SHARE_HELLO, SHARE_RELEASE,
		SHARE_WAIT, SHARE_ASK, SHARE_ALONE, SHARE_TAKE, SHARE_BATCH,
		SHARE_VIEW, SHARE_WELCOME, SHARE_CHANGE};
	struct share_msg m = hello_of(2 + draw(3), draw(24));

	m.hello.wish = 1 + draw(4);
	m.hello.grace_s = draw(2);
	if (draw(3) == 0)
		return m;
	memset(&m, 0, sizeof(m));
	m.type = types[draw(sizeof(types) / sizeof(*types))];
	m.step.step = draw(24);
	return m;
}

static void say_anything(const struct joined *j)
{
	struct share_msg m = message_of_any_type();
	char bytes[8192];
	size_t n = share_msg_print(&m, bytes, sizeof(bytes));

	if (draw(4) == 0)
		n = 1 + draw((uint32_t)n);
	for (uint32_t i = draw(4); i-- > 0;)
		bytes[draw((uint32_t)n)] = (char)draw(256);
	/* This fails if the host has closed the connection, or if the buffer is
	 * full. */
	(void)!send(j->link.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool is_dropped(struct joined *j)
{
	struct share_msg m;
	int rc, fd;

	do {
		rc = share_link_recv(&j->link, &m, &fd, 0);
		if (fd >= 0)
			(void)close(fd);
	} while (rc == 1);
	return rc < 0;
}

/* Try until the connection succeeds: it fails while too many others wait for
 * the host. */
static void connect_again(struct scene *s, struct joined *j)
{
	struct error err = {""};
	int rc;

	share_link_close(&j->link);
	while ((rc = share_link_open(&j->link, s->place, &err)) == -EAGAIN)
		(void)poll(NULL, 0, 1);
	ck_assert_int_eq(rc, 0);
}

/* Take a batch of the honest member, if one is ready. */
static unsigned take_if_ready(struct joined *j, uint64_t step)
{
	struct share_msg m;
	int rc = next_message(j, &m, 0);

	ck_assert_int_ge(rc, 0);
	if (rc == 0)
		return 0;
	ck_assert_int_eq(m.type, SHARE_BATCH);
	ck_assert_uint_eq(m.batch.step, step);
	give_back(j, step);
	return 1;
}

START_TEST(test_a_host_bears_messages_of_any_kind)
{
	struct joined j, k[2];
	struct scene s;
	uint64_t step = 0;

	scene_begin(&s, 100, 1);
	join_at(&s, &j, 1);
	for (unsigned i = 0; i < 2; i++) {
		k[i].link = (struct share_link){-1, -1, 0};
		connect_again(&s, &k[i]);
	}
	for (unsigned n = 0; n < ANYTHING; n++) {
		unsigned i = draw(2);

		say_anything(&k[i]);
		if (draw(8) == 0 || is_dropped(&k[i]))
			connect_again(&s, &k[i]);
		if (step < 100 * (uint64_t)n / ANYTHING)
			step += take_if_ready(&j, step);
	}
	share_link_close(&k[0].link);
	share_link_close(&k[1].link);
	for (; step < 100; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
	}
	part(&j);
	scene_end(&s);
}
END_TEST

/* -- Takeover -------------------------------------------------------------- */

static pid_t idle_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static uint32_t missing_now(struct joined *j, struct share_msg *msg)
{
	say(j, SHARE_ASK, 0);
	do
		ck_assert_int_eq(
			share_link_recv(&j->link, msg, &(int){-1}, WAIT_MS), 1);
	while (msg->type != SHARE_VIEW);
	return msg->view.missing;
}

/* One member runs, one is stopped and may continue alone, and one is stopped
 * but the others wait for it. */
START_TEST(test_the_next_host_waits_two_seconds_for_who_is_silent)
{
	struct share_view before = {.jobs_n = 3, .begun = 1};
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from},
		.before = &before,
		.begun = true,
	};
	struct share_msg hello = hello_of(9, 5), msg;
	struct error err = {""};
	uint64_t began_ns;
	struct joined j;
	struct scene s;
	pid_t pids[3];
	int status;

	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	for (unsigned i = 0; i < 3; i++) {
		pids[i] = idle_child();
		before.jobs[i] = (struct share_job){.id = 20 + i,
			.pid = (uint32_t)pids[i],
			.born = proc_born(pids[i]),
			.grace_s = i == 1};
		if (i == 0)
			continue;
		ck_assert_int_eq(kill(pids[i], SIGSTOP), 0);
		ck_assert_int_eq(waitpid(pids[i], &status, WUNTRACED), pids[i]);
	}
	config.place = s.place;
	config.ops.arg = &s.m;
	began_ns = clock_now_ns();
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	hello.hello.wish = SHARE_WISH_AGAIN;
	ck_assert_int_eq(join_with(&s, &j, &hello.hello, &err), 0);
	while (missing_now(&j, &msg) == 3)
		(void)poll(NULL, 0, 1);
	ck_assert_uint_ge(clock_now_ns() - began_ns, 2 * NS_PER_S);
	ck_assert_uint_eq(msg.view.missing, 1);
	ck_assert_ptr_nonnull(strstr(msg.view.text, "(stopped)"));
	ck_assert_uint_eq(msg.view.begun, 0);
	ck_assert_int_eq(kill(pids[2], SIGKILL), 0);
	ck_assert_uint_eq(take_batch(&j), 5);
	for (unsigned i = 0; i < 3; i++) {
		/* this may kill a process a second time */
		(void)kill(pids[i], SIGKILL);
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
	}
	part(&j);
	scene_end(&s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("share-odd");
	TCase *t = case_with(s, "share-odd", make_dir, remove_dir);

	tcase_add_test(t, test_a_member_that_is_parted_keeps_what_it_has_taken);
	tcase_add_test(t, test_who_says_nothing_takes_nobodys_place);
	tcase_add_test(
		t, test_a_host_that_hangs_is_left_behind_within_a_second);
	tcase_add_test(t, test_a_host_bears_messages_of_any_kind);
	/* valgrind closes accepted connections above the limit */
	if (!test_on_valgrind())
		tcase_add_test(
			t, test_a_host_without_descriptors_does_not_spin);
	if (!test_has_pidfd())
		return s;
	tcase_add_test(
		t, test_the_next_host_waits_for_the_members_of_the_one_before);
	tcase_add_test(
		t, test_the_next_host_waits_two_seconds_for_who_is_silent);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

/* SPDX-License-Identifier: MIT */
/* Tests of src/loader/share: a host and members that follow the protocol. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "share_fixture.h"

START_TEST(test_all_members_get_every_batch)
{
	struct joined j[2];
	struct share_msg msg;
	struct scene s;

	scene_begin(&s, 20, 2);
	join_at(&s, &j[0], 1);
	/* only one of two jobs has joined */
	ck_assert_int_eq(next_message(&j[0], &msg, 0), 0);
	join_at(&s, &j[1], 2);
	for (uint64_t step = 0; step < 20; step++)
		for (int i = 0; i < 2; i++) {
			ck_assert_uint_eq(take_batch(&j[i]), step);
			give_back(&j[i], step);
		}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(next_message(&j[i], &msg, WAIT_MS), 1);
		ck_assert_int_eq(msg.type, SHARE_END);
		ck_assert_uint_eq(msg.step.step, 20);
		part(&j[i]);
	}
	ck_assert_uint_le(s.m.most, SLOTS);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_slot_is_used_again_when_the_last_member_has_released_it)
{
	struct joined j[2];
	struct share_msg msg;
	struct scene s;

	scene_begin(&s, 20, 2);
	join_at(&s, &j[0], 1);
	join_at(&s, &j[1], 2);
	for (uint64_t step = 0; step < SLOTS; step++) {
		ck_assert_uint_eq(take_batch(&j[0]), step);
		give_back(&j[0], step);
	}
	ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	for (uint64_t step = 0; step < SLOTS; step++)
		ck_assert_uint_eq(take_batch(&j[1]), step);
	give_back(&j[1], 1);
	ck_assert_uint_eq(take_batch(&j[0]), SLOTS);
	ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	part(&j[1]); /* the host drops the batches that this member held */
	ck_assert_uint_eq(take_batch(&j[0]), SLOTS + 1);
	part(&j[0]);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_dead_member_is_dropped_though_its_child_has_the_socket)
{
	struct joined j, k;
	struct scene s;
	int status, hold[2], told[2];
	char byte;
	pid_t pid;

	scene_begin(&s, 20, 2);
	join_at(&s, &j, 1);
	ck_assert_int_eq(pipe(hold), 0);
	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		struct joined dead;

		(void)close(hold[1]);
		join_at(&s, &dead, 2);
		/* the child outlives this process, and has the socket */
		if (fork() == 0) {
			(void)!read(hold[0], &byte, 1);
			_exit(0);
		}
		(void)!write(told[1], "x", 1);
		(void)pause();
		_exit(0);
	}
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	for (uint64_t step = 0; step < SLOTS; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_uint_eq(take_batch(&j), SLOTS);
	/* Another member can have this element now. */
	join_at(&s, &k, 3);
	ck_assert_uint_eq(k.welcome.step, 10);
	part(&k);
	part(&j);
	(void)close(hold[1]);
	scene_end(&s);
	(void)close(hold[0]);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

START_TEST(test_who_is_late_begins_with_the_next_epoch)
{
	struct share_msg hello = hello_of(2, 0);
	struct error err = {""};
	struct joined j, k;
	struct scene s;

	scene_begin(&s, 20, 1);
	join_at(&s, &j, 1);
	for (uint64_t step = 0; step < 5; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
	}
	join_at(&s, &k, 2);
	ck_assert_uint_eq(k.welcome.step, 10);
	for (uint64_t step = 5; step < 14; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
		if (step >= 10) {
			ck_assert_uint_eq(take_batch(&k), step);
			give_back(&k, step);
		}
	}
	part(&k);
	ck_assert_int_eq(join_with(&s, &k, &hello.hello, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, "last epoch"));
	share_link_close(&k.link);
	hello.hello.wish = SHARE_WISH_STEP;
	hello.hello.step = 3;
	ck_assert_int_eq(join_with(&s, &k, &hello.hello, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, "past step 3"));
	share_link_close(&k.link);
	part(&j);
	scene_end(&s);
}
END_TEST

START_TEST(test_the_stream_begins_at_the_least_step_that_is_wanted)
{
	struct share_msg hello = hello_of(1, 0);
	struct error err = {""};
	struct joined j[2];
	struct scene s;

	scene_begin(&s, 20, 2);
	hello.hello.wish = SHARE_WISH_STEP;
	for (unsigned i = 0; i < 2; i++) {
		hello.hello.id = i;
		hello.hello.step = i ? 7 : 9;
		ck_assert_int_eq(join_with(&s, &j[i], &hello.hello, &err), 0);
	}
	for (uint64_t step = 7; step < 12; step++)
		for (int i = 0; i < 2; i++) {
			if (step < 9 && i == 0)
				continue;
			ck_assert_uint_eq(take_batch(&j[i]), step);
			give_back(&j[i], step);
		}
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_member_that_talks_nonsense_is_dropped)
{
	struct share_msg hello = hello_of(1, 0), msg;
	struct error err = {""};
	struct joined j, k;
	struct scene s;

	scene_begin(&s, 20, 1);
	hello.hello.label[0] = 'T';
	ck_assert_int_eq(join_with(&s, &k, &hello.hello, &err), -ESTALE);
	ck_assert_str_eq(err.msg, "label differs");
	share_link_close(&k.link);
	join_at(&s, &j, 1);
	ck_assert_int_eq(share_link_open(&k.link, s.place, &err), 0);
	ck_assert_int_eq(write(k.link.fd, "nonsense", 8), 8);
	ck_assert_int_eq(next_message(&k, &msg, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_REFUSE);
	ck_assert_int_eq(next_message(&k, &msg, WAIT_MS), -EPIPE);
	share_link_close(&k.link);
	/* Release a step that the member did not get. */
	ck_assert_uint_eq(take_batch(&j), 0);
	give_back(&j, 19);
	do
		ck_assert_int_eq(next_message(&j, &msg, WAIT_MS), 1);
	while (msg.type == SHARE_BATCH);
	ck_assert_int_eq(msg.type, SHARE_REFUSE);
	part(&j);
	/* The view shows the number of malformed messages. */
	ck_assert_int_eq(share_link_open(&k.link, s.place, &err), 0);
	msg.type = SHARE_ASK;
	msg.step.step = 0;
	ck_assert_int_eq(share_link_send(&k.link, &msg), 0);
	ck_assert_int_eq(
		share_link_recv(&k.link, &msg, &(int){-1}, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_VIEW);
	ck_assert_uint_eq(msg.view.malformed, 2);
	ck_assert_uint_eq(msg.view.jobs_n, 0);
	share_link_close(&k.link);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_failure_is_everybodys)
{
	struct joined j;
	struct share_msg msg;
	struct scene s;

	scene_begin(&s, 1, 1);
	s.m.fail = -EIO;
	join_at(&s, &j, 1);
	ck_assert_uint_eq(take_batch(&j), 0);
	ck_assert_int_eq(next_message(&j, &msg, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_REFUSE);
	ck_assert_int_eq(msg.refuse.error, -EIO);
	ck_assert_str_eq(msg.refuse.text, "it is made up");
	part(&j);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_host_begins_with_its_own_member)
{
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from},
		.begun = true,
		.own = 7,
	};
	struct error err = {""};
	struct joined j[2];
	struct share_msg hello = hello_of(2, 0), msg;
	struct scene s;

	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	config.place = s.place;
	config.ops.arg = &s.m;
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	/* A new member might want steps that were already released. */
	ck_assert_int_eq(join_with(&s, &j[0], &hello.hello, &err), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(err.msg, "a new host"));
	part(&j[0]);
	hello.hello.wish = SHARE_WISH_AGAIN;
	hello.hello.step = 5;
	for (unsigned i = 0; i < 2; i++) {
		hello.hello.id = i ? 7 : 1;
		ck_assert_int_eq(join_with(&s, &j[i], &hello.hello, &err), 0);
		if (i == 0)
			ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	}
	ck_assert_uint_eq(take_batch(&j[0]), 5);
	ck_assert_uint_eq(take_batch(&j[1]), 5);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("share");
	TCase *t = case_with(s, "share", make_dir, remove_dir);

	tcase_add_test(t, test_all_members_get_every_batch);
	tcase_add_test(t,
		test_a_slot_is_used_again_when_the_last_member_has_released_it);
	tcase_add_test(t, test_who_is_late_begins_with_the_next_epoch);
	tcase_add_test(
		t, test_the_stream_begins_at_the_least_step_that_is_wanted);
	tcase_add_test(t, test_a_member_that_talks_nonsense_is_dropped);
	tcase_add_test(t, test_a_failure_is_everybodys);
	tcase_add_test(t, test_a_host_begins_with_its_own_member);
	if (!test_has_pidfd())
		return s;
	tcase_add_test(t,
		test_a_dead_member_is_dropped_though_its_child_has_the_socket);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

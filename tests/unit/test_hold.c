/* SPDX-License-Identifier: MIT */
/*
 * The parts of refrain-hold: when it stops starting daemons, the messages that
 * it receives, and the socket at a path. System tests cover the whole program.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "suite.h"
#include "tools/hold_ends.h"
#include "tools/hold_socket.h"
#include "tools/hold_wire.h"

#define HOUR_MS 3600000L

/* -- Daemons that end ------------------------------------------------------ */

START_TEST(test_hold_gives_up_after_five_failures_in_a_minute)
{
	struct hold_ends e = {.failures = 0};
	long now = 5000;

	for (int i = 1; i < HOLD_FAILURES_MAX; i++, now += 1000)
		ck_assert_ptr_null(hold_ends_note(&e, true, 0, now));
	ck_assert_ptr_nonnull(hold_ends_note(&e, true, 0, now));
}
END_TEST

START_TEST(test_hold_goes_on_if_failures_are_rare)
{
	struct hold_ends e = {.failures = 0};

	for (long i = 0; i < HOLD_SHORT_MAX; i++)
		ck_assert_ptr_null(hold_ends_note(
			&e, true, HOLD_SHORT_MS, i * HOLD_FAILURES_MS / 4));
}
END_TEST

START_TEST(test_hold_pauses_for_longer_after_each_failure)
{
	struct hold_ends e = {.failures = 0};
	long now = HOUR_MS;

	ck_assert_int_eq(hold_ends_pause_ms(&e, now), 0);
	for (long want = 100; want <= 800; want *= 2) {
		ck_assert_ptr_null(hold_ends_note(&e, true, 0, now));
		ck_assert_int_eq(hold_ends_pause_ms(&e, now), want);
	}
	ck_assert_int_eq(hold_ends_pause_ms(&e, now + HOLD_FAILURES_MS), 0);
}
END_TEST

/* Each daemon is killed, because the request of one reader makes it use too
 * much memory. */
START_TEST(test_hold_gives_up_if_all_daemons_are_killed_while_they_serve)
{
	struct hold_ends e = {.failures = 0};

	for (long i = 1; i < HOLD_SHORT_MAX; i++)
		ck_assert_ptr_null(
			hold_ends_note(&e, false, 10 * (i % 100), i * HOUR_MS));
	ck_assert_ptr_nonnull(
		hold_ends_note(&e, false, 0, HOLD_SHORT_MAX * HOUR_MS));
}
END_TEST

START_TEST(test_hold_goes_on_for_ever_if_daemons_serve_for_an_hour)
{
	struct hold_ends e = {.failures = 0};

	for (long i = 1; i < 5L * HOLD_SHORT_MAX; i++)
		ck_assert_ptr_null(
			hold_ends_note(&e, false, HOUR_MS, i * HOUR_MS));
	/* A few daemons that are killed early do not count for ever. */
	for (long i = 0; i < 5L * HOLD_SHORT_MAX; i++)
		ck_assert_ptr_null(hold_ends_note(
			&e, false, i % 100 ? 0 : HOLD_SHORT_MS, i));
}
END_TEST

/* -- Messages -------------------------------------------------------------- */

static int flood[2];
static unsigned heard;

static void hear_and_send(void *arg, struct said *said)
{
	ck_assert_ptr_eq(arg, &heard);
	ck_assert_str_eq(said->text, "READY=1");
	heard++;
	ck_assert_int_eq(send(flood[0], "READY=1", 7, 0), 7);
}

START_TEST(test_hold_does_not_hear_a_flood_to_its_end)
{
	int one = 1;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, flood), 0);
	ck_assert_int_eq(setsockopt(flood[1], SOL_SOCKET, SO_PASSCRED, &one,
				 sizeof(one)),
		0);
	ck_assert_int_eq(send(flood[0], "READY=1", 7, 0), 7);
	hold_hear_queued(flood[1], hear_and_send, &heard);
	ck_assert_uint_eq(heard, HOLD_HEAR_MAX);
	(void)close(flood[0]);
	(void)close(flood[1]);
}
END_TEST

/* -- The socket at a path -------------------------------------------------- */

static char path[108];

static void in_dir(void)
{
	(void)snprintf(path, sizeof(path), "%s/socket", test_dir());
}

static void out_of_dir(void)
{
	(void)unlink(path);
}

static void put_file(void)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "data", 4), 4);
	(void)close(fd);
}

static mode_t mode_of(void)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode : 0;
}

START_TEST(test_hold_removes_no_file_at_the_path_of_its_socket)
{
	struct hold_socket s;

	put_file();
	ck_assert_int_eq(hold_socket_open(&s, path), -EADDRINUSE);
	hold_socket_remove(&s);
	ck_assert(S_ISREG(mode_of()));
	(void)close(s.fd);
}
END_TEST

START_TEST(test_hold_removes_no_socket_at_which_somebody_listens)
{
	struct hold_socket first, second;

	ck_assert_int_eq(hold_socket_open(&first, path), 0);
	ck_assert_int_eq(hold_socket_open(&second, path), -EADDRINUSE);
	hold_socket_remove(&second);
	ck_assert_uint_eq(mode_of(), S_IFSOCK | 0600);
	hold_socket_remove(&first);
	ck_assert_uint_eq(mode_of(), 0);
	(void)close(first.fd);
	(void)close(second.fd);
}
END_TEST

START_TEST(test_hold_takes_the_place_of_a_socket_that_was_left)
{
	struct hold_socket left, s;

	ck_assert_int_eq(hold_socket_open(&left, path), 0);
	(void)close(left.fd);
	ck_assert_int_eq(hold_socket_open(&s, path), 0);
	/* Another process may have the path at the end. */
	ck_assert_int_eq(unlink(path), 0);
	put_file();
	hold_socket_remove(&s);
	ck_assert(S_ISREG(mode_of()));
	(void)close(s.fd);
}
END_TEST

START_TEST(test_hold_has_an_address_without_a_path)
{
	struct hold_socket s;

	ck_assert_int_eq(hold_socket_open(&s, NULL), 0);
	ck_assert_int_eq(s.address[0], '@');
	ck_assert_uint_gt(strlen(s.address), 1);
	hold_socket_remove(&s);
	(void)close(s.fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hold");
	TCase *t = case_of(suite, "ends");

	tcase_add_test(t, test_hold_gives_up_after_five_failures_in_a_minute);
	tcase_add_test(t, test_hold_goes_on_if_failures_are_rare);
	tcase_add_test(t, test_hold_pauses_for_longer_after_each_failure);
	tcase_add_test(t,
		test_hold_gives_up_if_all_daemons_are_killed_while_they_serve);
	tcase_add_test(
		t, test_hold_goes_on_for_ever_if_daemons_serve_for_an_hour);
	t = case_of(suite, "messages");
	tcase_add_test(t, test_hold_does_not_hear_a_flood_to_its_end);
	t = case_with(suite, "socket", in_dir, out_of_dir);
	tcase_add_test(t, test_hold_removes_no_file_at_the_path_of_its_socket);
	tcase_add_test(
		t, test_hold_removes_no_socket_at_which_somebody_listens);
	tcase_add_test(t, test_hold_takes_the_place_of_a_socket_that_was_left);
	tcase_add_test(t, test_hold_has_an_address_without_a_path);
	return run_suite(suite);
}

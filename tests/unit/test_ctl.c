/* SPDX-License-Identifier: MIT */
/* Tests of the control socket: requests and their answers, and hostile peers.
 */
#include "ctl_fixture.h"
#include "suite.h"

/* -- requests -- */

static void count_line(void *arg, const json_t *line)
{
	json_int_t *next = arg;

	ck_assert(json_is_true(json_object_get(line, "progress")));
	ck_assert_int_eq(
		json_integer_value(json_object_get(line, "i")), (*next)++);
}

START_TEST(test_ctl_request_gets_its_progress_lines_and_then_its_reply)
{
	struct ctl_client *c = client();
	json_t *reply = NULL;
	json_int_t next = 0;

	for (int i = 0; i < 2; i++) {
		next = 0;
		ck_assert_int_eq(ctl_request(c,
					 json_pack("{s:s,s:i}", "cmd", "count",
						 "n", 1000),
					 20, count_line, &next, &reply, &err),
			0);
		ck_assert_int_eq(next, 1000);
		json_decref(reply);
	}
	ctl_disconnect(c);
}
END_TEST

START_TEST(test_ctl_request_reports_the_daemons_error_in_its_words)
{
	struct ctl_client *c = client();
	json_t *reply = NULL;

	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "fail"), 20,
				 NULL, NULL, &reply, &err),
		-EREMOTEIO);
	ck_assert_str_eq(err.msg, "cannot read 'caf?'");
	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "nosuch"), 20,
				 NULL, NULL, &reply, &err),
		-EREMOTEIO);
	ck_assert_str_eq(err.msg, "unknown command 'nosuch'");
	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "forget"), 20,
				 NULL, NULL, &reply, &err),
		-EREMOTEIO);
	ctl_disconnect(c);
}
END_TEST

START_TEST(test_ctl_request_times_out_when_the_daemon_is_silent)
{
	struct ctl_client *c = client();
	json_t *reply = NULL;

	ck_assert_int_eq(ctl_request(c, json_pack("{s:s}", "cmd", "wait"), 1,
				 NULL, NULL, &reply, &err),
		-ETIMEDOUT);
	ctl_disconnect(c);
	wait_sem(&left);
}
END_TEST

START_TEST(test_ctl_answers_a_peer_that_only_stopped_sending)
{
	static const char request[] = "{\"cmd\":\"count\",\"n\":1}\n";
	char line[256];
	int fd = raw();

	put(fd, request, strlen(request));
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
	ck_assert_uint_gt(get_line(fd, line, sizeof(line)), 0);
	ck_assert_uint_gt(get_line(fd, line, sizeof(line)), 0);
	ck_assert_str_eq(line, "{\"ok\":true}\n");
	ck_assert_uint_eq(get_line(fd, line, sizeof(line)), 0);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_command_learns_that_its_peer_hung_up)
{
	static const char request[] = "{\"cmd\":\"wait\"}\n";
	int fd = raw();

	put(fd, request, strlen(request));
	wait_sem(&entered);
	(void)close(fd);
	wait_sem(&left);
}
END_TEST

START_TEST(test_ctl_releases_what_a_connection_owns_when_it_ends)
{
	static const char own[] = "{\"cmd\":\"own\",\"n\":0}\n"
				  "{\"cmd\":\"own\",\"n\":1}\n"
				  "{\"cmd\":\"own\",\"n\":0}\n{\"cmd\":\"ow";
	int fd = raw();

	/* Each resource replaces the previous one. Then the client ends in the
	 * middle of a line. */
	put(fd, own, strlen(own));
	wait_sem(&left);
	wait_sem(&left);
	ck_assert_int_eq(owned_ends[0], 1);
	ck_assert_int_eq(owned_ends[1], 1);
	(void)close(fd);
	wait_sem(&left);
	ck_assert_int_eq(owned_ends[0], 2);
}
END_TEST

START_TEST(test_ctl_stop_wakes_commands_and_removes_the_socket)
{
	static const char request[] = "{\"cmd\":\"wait\"}\n";
	int fd = raw(), idle = raw();
	char path[128];

	put(fd, request, strlen(request));
	put(idle, "{", 1);
	wait_sem(&entered);
	(void)snprintf(path, sizeof(path), "%s", ctl_server_path(server));
	ctl_server_stop(server);
	server = NULL;
	wait_sem(&left);
	ck_assert_int_eq(access(path, F_OK), -1);
	(void)close(fd);
	(void)close(idle);
}
END_TEST

START_TEST(test_ctl_drops_a_peer_that_does_not_read)
{
	static const char request[] = "{\"cmd\":\"flood\"}\n";
	int fd;

	fd = raw();
	put(fd, request, strlen(request));
	wait_sem(&left);
	(void)close(fd);
}
END_TEST

/* -- hostile input -- */

static const struct {
	const char *data;
	size_t len;
} garbage[] = {
#define GARBAGE(text)                                                          \
	{                                                                      \
		text, sizeof(text) - 1                                         \
	}
	GARBAGE(""),
	GARBAGE("\r"),
	GARBAGE("hello"),
	GARBAGE("{"),
	GARBAGE("{}"),
	GARBAGE("[]"),
	GARBAGE("null"),
	GARBAGE("\"status\""),
	GARBAGE("{\"cmd\":1}"),
	GARBAGE("{\"cmd\":null}"),
	GARBAGE("{\"cmd\":\"\"}"),
	GARBAGE("{\"cmd\":\"e\\u0000cho\"}"),
	GARBAGE("{\"cmd\":\"ec\0ho\"}"),
	GARBAGE("{\"cmd\":\"echo\"}\0"),
	GARBAGE("{\"cmd\":\"echo\",\"cmd\":\"count\"}"),
	GARBAGE("{\"cmd\":\"echo\",\"n\":123456789012345678901234567890}"),
	GARBAGE("{\"cmd\":\"echo\",\"n\":1e999999}"),
	GARBAGE("{\"cmd\":\"echo\",\"n\":-}"),
	GARBAGE("{\"cmd\":\"\xff\xfe\"}"),
	GARBAGE("\xff\xfe\xfd"),
	GARBAGE("{\"cmd\":\"%s%n%n%n\"}"),
	GARBAGE("{\"cmd\":\"echo\"} {\"cmd\":\"echo\"}"),
};

START_TEST(test_ctl_refuses_garbage_and_goes_on)
{
	int fd = raw();

	put(fd, garbage[_i].data, garbage[_i].len);
	put(fd, "\n", 1);
	expect_refusal(fd);
	expect_echo(fd, 1);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_refuses_deep_nesting)
{
	static char deep[500000];
	int fd = raw();

	memset(deep, '[', sizeof(deep));
	deep[sizeof(deep) - 1] = '\n';
	put(fd, deep, sizeof(deep));
	expect_refusal(fd);
	expect_echo(fd, 1);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_takes_a_request_of_the_largest_size)
{
	CLEANUP_FREE char *big = malloc(CTL_REQUEST_MAX_BYTES + 1);
	int fd = raw();

	ck_assert_ptr_nonnull(big);
	memset(big, ' ', CTL_REQUEST_MAX_BYTES);
	memcpy(big, "{\"cmd\":\"count\"}", 15);
	big[CTL_REQUEST_MAX_BYTES] = '\n';
	put(fd, big, CTL_REQUEST_MAX_BYTES + 1);
	expect_echo(fd, 1);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_refuses_a_longer_request_and_hangs_up)
{
	size_t bytes =
		/* the server does not look at the last byte */
		CTL_REQUEST_MAX_BYTES + 2;
	CLEANUP_FREE char *big = malloc(bytes);
	char line[256];
	int fd = raw();

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', bytes);
	put(fd, big, bytes);
	ck_assert_uint_gt(get_line(fd, line, sizeof(line)), 0);
	ck_assert_ptr_nonnull(strstr(line, "is longer than"));
	ck_assert_uint_eq(get_line(fd, line, sizeof(line)), 0);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_hangs_up_when_the_rest_of_a_line_does_not_come)
{
	char line[256];
	int fd;

	fd = raw();
	put(fd, "{\"cmd\":", 7);
	expect_refusal(fd);
	ck_assert_uint_eq(get_line(fd, line, sizeof(line)), 0);
	(void)close(fd);
}
END_TEST

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Change, drop, double or insert bytes of a valid request. */
static size_t mutate(char *to, const char *from)
{
	size_t len = strlen(from), changes = 1 + random_next() % 4;

	memcpy(to, from, len);
	while (changes--) {
		size_t at = len ? random_next() % len : 0;

		switch (random_next() % 4) {
		case 0:
			to[at] = (char)random_next();
			break;
		case 1:
			to[at] ^= (char)(1 << random_next() % 8);
			break;
		case 2:
			memmove(to + at + 1, to + at, len - at);
			len++;
			break;
		default:
			len = at;
		}
	}
	return len;
}

START_TEST(test_ctl_survives_ten_thousand_mutations)
{
	static const char *const good[] = {
		"{\"cmd\":\"echo\",\"paths\":[\"a\",{\"hex\":\"ff\"}]}",
		"{\"cmd\":\"count\",\"n\":3}",
		"{\"cmd\":\"fail\",\"deep\":[[[[[1.5e3,true,null]]]]]}",
		"{\"cmd\":\"\\u00e9\\ud83d\\ude00\"}",
	};
	char line[256];
	int fd = raw();

	for (int i = 0; i < 10000; i++) {
		size_t len = mutate(line, good[random_next() % 4]);

		/* Do not send a count of a billion, which the server would
		 * answer as well. */
		if (memmem(line, len, "count", 5) &&
			memmem(line, len, "\"n\":", 4) &&
			!memmem(line, len, "\"n\":3}", 6))
			continue;
		line[len] = '\n';
		put(fd, line, len + 1);
		if (i % 10 == 0)
			expect_echo(fd, i);
	}
	expect_echo(fd, 10000);
	(void)close(fd);
}
END_TEST

START_TEST(test_ctl_refuses_the_65th_connection_until_one_closes)
{
	int fds[CTL_CONNECTIONS_MAX], fd;
	bool served = false;

	for (int i = 0; i < CTL_CONNECTIONS_MAX; i++) {
		fds[i] = raw();
		expect_echo(fds[i], i);
	}
	fd = raw();
	expect_refusal(fd);
	(void)close(fd);
	(void)close(fds[0]);
	while (!served) { /* the thread of the connection ends with it */
		struct ctl_client *c = client();
		json_t *reply = NULL;

		served = ctl_request(c, json_pack("{s:s}", "cmd", "echo"), 20,
				 NULL, NULL, &reply, &err) == 0;
		json_decref(reply);
		ctl_disconnect(c);
	}
	for (int i = 1; i < CTL_CONNECTIONS_MAX; i++)
		(void)close(fds[i]);
}
END_TEST

/* -- names -- */

START_TEST(test_ctl_paths_of_any_bytes_go_through_json)
{
	static const char *const paths[] = {
		"a/b", "caf\xc3\xa9", "caf\xe9", "\xff\xfe", "a\nb\"c\\"};
	char *back = NULL;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		json_t *value = ctl_path_new(paths[i]);

		ck_assert_ptr_nonnull(value);
		ck_assert_int_eq(ctl_path_get(value, &back), 0);
		ck_assert_str_eq(back, paths[i]);
		free(back);
		json_decref(value);
	}
}
END_TEST

START_TEST(test_ctl_path_refuses_what_is_no_path)
{
	static const char *const values[] = {"1", "null", "\"\"", "{}",
		"{\"hex\":\"\"}", "{\"hex\":\"f\"}", "{\"hex\":\"fg\"}",
		"{\"hex\":\"6100\"}", "{\"hex\":7}", "[\"a\"]",
		"\"a\\u0000b\""};
	char *path = NULL;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		json_t *value = json_loads(
			values[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		ck_assert_ptr_nonnull(value);
		ck_assert_int_eq(ctl_path_get(value, &path), -EINVAL);
		json_decref(value);
	}
}
END_TEST

static void add_requests(Suite *s)
{
	TCase *tc = case_with(s, "requests", setup, teardown);

	tcase_add_test(tc,
		test_ctl_request_gets_its_progress_lines_and_then_its_reply);
	tcase_add_test(
		tc, test_ctl_request_reports_the_daemons_error_in_its_words);
	tcase_add_test(
		tc, test_ctl_request_times_out_when_the_daemon_is_silent);
	tcase_add_test(tc, test_ctl_answers_a_peer_that_only_stopped_sending);
	tcase_add_test(tc, test_ctl_command_learns_that_its_peer_hung_up);
	tcase_add_test(
		tc, test_ctl_releases_what_a_connection_owns_when_it_ends);
	tcase_add_test(tc, test_ctl_stop_wakes_commands_and_removes_the_socket);
	tcase_add_test(tc, test_ctl_paths_of_any_bytes_go_through_json);
	tcase_add_test(tc, test_ctl_path_refuses_what_is_no_path);
}

static void setup_impatient(void)
{
	start_server(50);
}

static void add_slow(Suite *s)
{
	TCase *tc = case_with(s, "slow", setup_impatient, teardown);

	tcase_add_test(tc, test_ctl_drops_a_peer_that_does_not_read);
	tcase_add_test(
		tc, test_ctl_hangs_up_when_the_rest_of_a_line_does_not_come);
}

static void add_hostile(Suite *s)
{
	TCase *tc = case_with(s, "hostile", setup, teardown);

	tcase_add_loop_test(tc, test_ctl_refuses_garbage_and_goes_on, 0,
		(int)(sizeof(garbage) / sizeof(garbage[0])));
	tcase_add_test(tc, test_ctl_refuses_deep_nesting);
	tcase_add_test(tc, test_ctl_takes_a_request_of_the_largest_size);
	tcase_add_test(tc, test_ctl_refuses_a_longer_request_and_hangs_up);
	tcase_add_test(tc, test_ctl_survives_ten_thousand_mutations);
	tcase_add_test(
		tc, test_ctl_refuses_the_65th_connection_until_one_closes);
}

int main(void)
{
	Suite *suite = suite_create("ctl");

	add_requests(suite);
	add_slow(suite);
	add_hostile(suite);
	return run_suite(suite);
}

/* SPDX-License-Identifier: MIT */
/* Tests of the events' table and of the daemon's log. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/events.h"
#include "mount/daemon/log.h"
#include "mount/daemon/log_cause_impl.h"
#include "suite.h"

static char dir[64], file[96];

static void setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/log-XXXXXX", test_dir());
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/log", dir);
}

static void teardown(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

/* Returns the content of a file; the caller frees it. */
static char *contents(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = calloc(1, 1 << 20);

	ck_assert_ptr_nonnull(text);
	if (f) {
		(void)!fread(text, 1, (1 << 20) - 1, f);
		(void)fclose(f);
	}
	return text;
}

static unsigned lines_with(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static struct log *log_to_file(enum event_level level, bool json)
{
	struct log_config config = {file, "/mnt/x", level, json};
	struct error err = {""};
	struct log *log;

	ck_assert_msg(log_new(&log, &config, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(log_start(log, &err), 0);
	return log;
}

/* -- The table -- */

START_TEST(test_event_messages_are_of_the_table)
{
	struct event e = {.kind = EVENT_READ_FAILED,
		.path = "a\033[2Jb\nc",
		.status = -EIO};
	char buf[LOG_MESSAGE_MAX];

	ck_assert_str_eq(event_format(buf, sizeof(buf), &e),
		"a reader of 'a\\x1b[2Jb\\nc' got an I/O error: Input/output "
		"error");
	e = (struct event){.kind = EVENT_ORIGIN_BACK, .n = 7};
	ck_assert_str_eq(event_format(buf, sizeof(buf), &e),
		"the source answers again; 7 requests given up before");
	e = (struct event){.kind = EVENT_ORIGIN_FAILED,
		.path = "",
		.n = 1,
		.status = -EIO};
	ck_assert_str_eq(event_format(buf, sizeof(buf), &e),
		"the source failed: gave up on '/' after 1 attempt: "
		"Input/output error");
	e.n = 6;
	ck_assert_ptr_nonnull(
		strstr(event_format(buf, sizeof(buf), &e), "6 attempts: "));
}
END_TEST

START_TEST(test_event_message_fits_its_buffer_and_keeps_the_end_of_a_name)
{
	char name[4096], buf[LOG_MESSAGE_MAX], small[10];
	struct event e = {
		.kind = EVENT_READ_FAILED, .path = name, .status = -EIO};

	memset(name, 'x', sizeof(name) - 1);
	memcpy(name + sizeof(name) - 5, "last", 5);
	ck_assert_ptr_nonnull(
		strstr(event_format(buf, sizeof(buf), &e), "xlast' got"));
	ck_assert_uint_lt(strlen(buf), 250);
	ck_assert_str_eq(event_format(small, sizeof(small), &e), "a reader ");
}
END_TEST

START_TEST(test_event_table_says_what_to_do)
{
	for (size_t i = 0; i < EVENT_KINDS; i++) {
		const struct event_info *info = &event_table[i];

		ck_assert_int_eq(info->action[strlen(info->action) - 1], '.');
		ck_assert_int_ne(info->message[strlen(info->message) - 1], '.');
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(info->name, event_table[k].name);
	}
}
END_TEST

/* -- Lines -- */

static struct log_record record_of(enum event_kind kind, const char *path)
{
	struct event e = {.kind = kind, .path = path, .status = -EIO};
	struct log_record r = {.wall_ns = UINT64_C(1700000000123456789)};

	log_record_fill(&r, &e);
	return r;
}

START_TEST(test_line_has_what_its_place_needs)
{
	struct log_record r = record_of(EVENT_READ_FAILED, "f");
	char line[LOG_LINE_MAX], want[256];

	(void)log_line(line, &r, LINE_STDERR, false, "/m");
	ck_assert_str_eq(line,
		"refrain: error: a reader of 'f' got an I/O error: "
		"Input/output error\n");
	(void)log_line(line, &r, LINE_JOURNAL, false, "/m");
	ck_assert_str_eq(line,
		"<3>a reader of 'f' got an I/O error: Input/output error\n");
	(void)snprintf(want, sizeof(want),
		"2023-11-14T22:13:20Z refrain[%d]: error: a reader of 'f' got "
		"an I/O error: Input/output error\n",
		(int)getpid());
	(void)log_line(line, &r, LINE_FILE, false, "/m");
	ck_assert_str_eq(line, want);
}
END_TEST

START_TEST(test_line_of_a_summary_says_how_many_and_since_when)
{
	struct log_record r = record_of(EVENT_READ_FAILED, "f");
	char line[LOG_LINE_MAX];

	r.suppressed = 42;
	r.since_ns = r.wall_ns - 60 * NS_PER_S;
	(void)log_line(line, &r, LINE_STDERR, false, "/m");
	ck_assert_str_eq(line,
		"refrain: error: 42 more like this since 22:12:20Z: a reader "
		"of 'f' got an I/O error: Input/output error\n");
}
END_TEST

START_TEST(test_line_as_json_is_one_object_whatever_the_name)
{
	struct log_record r = record_of(EVENT_READ_FAILED, "a\n\xff\"b");
	char line[LOG_LINE_MAX];
	json_t *o;
	size_t n = log_line(line, &r, LINE_FILE, true, "/m");

	ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
	o = json_loads(line, 0, NULL);
	ck_assert_ptr_nonnull(o);
#define MEMBER(name) json_string_value(json_object_get(o, name))
	ck_assert_str_eq(MEMBER("time"), "2023-11-14T22:13:20.123Z");
	ck_assert_str_eq(MEMBER("level"), "error");
	ck_assert_str_eq(MEMBER("event"), "read-failed");
	ck_assert_str_eq(MEMBER("mountpoint"), "/m");
	ck_assert_str_eq(MEMBER("path"), "a\\n\\xff\"b");
	ck_assert_int_eq(json_integer_value(json_object_get(o, "errno")), EIO);
	json_decref(o);
}
END_TEST

/* -- The rate -- */

START_TEST(test_limit_lets_a_burst_pass_then_sums_up)
{
	struct log_limit l = {0};
	uint64_t t = 1000 * NS_PER_S;

	for (unsigned i = 0; i < LOG_BURST; i++)
		ck_assert(log_limit_take(&l, LOG_REFILL_NS, t, t));
	ck_assert(log_limit_due_ns(&l, LOG_REFILL_NS) == UINT64_MAX);
	for (unsigned i = 0; i < 1000; i++)
		ck_assert(!log_limit_take(&l, LOG_REFILL_NS, t + i, t + i));
	ck_assert(log_limit_due_ns(&l, LOG_REFILL_NS) == t + LOG_REFILL_NS);
	/* Events before the summary are part of it. */
	ck_assert(!log_limit_take(&l, LOG_REFILL_NS, t + 2 * LOG_REFILL_NS, t));
	ck_assert_uint_eq(
		log_limit_sum(&l, LOG_REFILL_NS, t + 2 * LOG_REFILL_NS), 1001);
	ck_assert(log_limit_take(&l, LOG_REFILL_NS, t + 2 * LOG_REFILL_NS, t));
}
END_TEST

#define DAY_NS (24 * 3600 * NS_PER_S)

/* Returns how many bytes the log gets in a day if an event happens every
 * second. */
static uint64_t bytes_of_a_day(enum event_kind kind, bool json)
{
	static const char name[] =
		"train/n01440764/a-directory-with-a-long-name/and-another-one/"
		"n01440764_10026_with_a_name_that_is_rather_long.JPEG";
	struct event e = {.kind = kind,
		.path = name,
		.dir = "/scratch/cache",
		.text = name,
		.status = -ETIMEDOUT,
		.n = 123456};
	struct log_record r = {.wall_ns = UINT64_C(1700000000000000000)};
	char line[LOG_LINE_MAX];
	struct log_limit l = {0};
	uint64_t bytes = 0, start = NS_PER_S;

	log_record_fill(&r, &e);
	for (uint64_t t = start; t < start + DAY_NS; t += NS_PER_S) {
		r.suppressed = 0;
		if (log_limit_due_ns(&l, LOG_REFILL_NS) <= t)
			r.suppressed = log_limit_sum(&l, LOG_REFILL_NS, t);
		else if (!log_limit_take(&l, LOG_REFILL_NS, t, t))
			continue;
		bytes += log_line(line, &r, LINE_FILE, json, "/mnt/imagenet");
	}
	return bytes;
}

START_TEST(test_a_day_of_every_fault_at_once_is_less_than_a_megabyte)
{
	uint64_t bytes = 0;

	/* Simulate only faults: other events come once in the life of a mount,
	 * or when a user requests them. */
	for (size_t kind = 0; kind < EVENT_KINDS; kind++)
		if (event_table[kind].level <= EVENT_WARNING)
			bytes += bytes_of_a_day((enum event_kind)kind, _i);
	ck_assert_uint_gt(bytes, 100000);
	ck_assert_uint_lt(bytes, 1000000);
}
END_TEST

/* -- The log -- */

START_TEST(test_log_writes_a_line_an_event_and_sums_up_the_rest)
{
	struct log *log = log_to_file(EVENT_NOTICE, false);
	struct event e = {
		.kind = EVENT_READ_FAILED, .path = "f", .status = -EIO};
	char *text;

	for (int i = 0; i < 1000; i++)
		event_report(log_sink(log), &e);
	e.kind = EVENT_ORIGIN_BACK;
	event_report(log_sink(log), &e);
	e.kind = EVENT_SCANNED; /* an event of a lower level */
	event_report(log_sink(log), &e);
	log_free(log);
	text = contents(file);
	ck_assert_uint_eq(lines_with(text, "\n"), LOG_BURST + 2);
	ck_assert_uint_eq(lines_with(text, "992 more like this"), 1);
	ck_assert_uint_eq(lines_with(text, "answers again"), 1);
	free(text);
}
END_TEST

/* Report `n` events with this cause. */
static void report(struct log *log, struct event e, unsigned n)
{
	e.path = "f";
	while (n-- > 0)
		event_report(log_sink(log), &e);
}

START_TEST(test_log_writes_a_new_cause_whatever_was_written_before)
{
	struct log *log = log_to_file(EVENT_NOTICE, false);
	char *text;

	report(log, (struct event){EVENT_READ_FAILED, .status = -EIO}, 50);
	report(log, (struct event){EVENT_READ_FAILED, .status = -EACCES}, 50);
	report(log,
		(struct event){
			EVENT_TIER_FAILED, .status = -ENOSPC, .dir = "/a"},
		50);
	report(log,
		(struct event){
			EVENT_TIER_FAILED, .status = -EROFS, .dir = "/a"},
		50);
	report(log,
		(struct event){
			EVENT_TIER_FAILED, .status = -EROFS, .dir = "/b"},
		50);
	report(log,
		(struct event){EVENT_ORIGIN_UNUSABLE, .text = "HTTP status 500",
			.cause = "500"},
		50);
	report(log,
		(struct event){EVENT_ORIGIN_UNUSABLE, .text = "HTTP status 403",
			.cause = "403"},
		50);
	log_free(log);
	text = contents(file);
	ck_assert_uint_eq(
		lines_with(text, "error: Permission denied"), LOG_BURST + 1);
	ck_assert_uint_eq(lines_with(text, "'/a': Read-only"), LOG_BURST + 1);
	ck_assert_uint_eq(lines_with(text, "'/b': Read-only"), LOG_BURST + 1);
	ck_assert_uint_eq(lines_with(text, "HTTP status 403"), LOG_BURST + 1);
	ck_assert_uint_eq(lines_with(text, "42 more like this"), 7);
	free(text);
}
END_TEST

START_TEST(test_log_writes_a_change_of_state_after_many_repetitions)
{
	struct event e = {EVENT_ORIGIN_FAILED, .status = -EIO};
	struct log *log = log_to_file(EVENT_NOTICE, false);
	char *text;

	report(log, e, 50);
	e.turn = true;
	for (int i = 0; i < 3; i++) {
		report(log, (struct event){EVENT_ORIGIN_BACK, .turn = true}, 1);
		report(log, e, 1);
	}
	log_free(log);
	text = contents(file);
	ck_assert_uint_eq(lines_with(text, "answers again"), 3);
	ck_assert_uint_eq(lines_with(text, "gave up on"), LOG_BURST + 3 + 1);
	free(text);
}
END_TEST

/* Simulate a day in which each second has an event with a new cause. */
START_TEST(test_log_of_any_number_of_causes_is_bounded)
{
	struct log_causes *all = calloc(1, sizeof(*all));
	struct log_record r = record_of(EVENT_ORIGIN_UNUSABLE, "f");
	struct event e = {.kind = EVENT_ORIGIN_UNUSABLE};
	uint64_t refill_ns = log_cause_refill_ns(LIMIT_USUAL);
	unsigned lines = 0;

	ck_assert_ptr_nonnull(all);
	for (uint64_t t = NS_PER_S; t < DAY_NS; t += NS_PER_S) {
		char cause[32];
		struct log_limit *l;

		(void)snprintf(
			cause, sizeof(cause), "%llu", (unsigned long long)t);
		e.cause = cause;
		l = &log_cause_note(all, &e, &r, t)->limit[LIMIT_USUAL];
		if (log_limit_due_ns(l, refill_ns) <= t)
			lines += log_limit_sum(l, refill_ns, t) > 0;
		else
			lines += log_limit_take(l, refill_ns, t, t);
	}
	ck_assert_uint_gt(lines, LOG_CAUSES_MAX);
	ck_assert_uint_lt(lines, 5000);
	free(all);
}
END_TEST

static void count_events(void *arg, const struct log_last *last)
{
	if (last->kind == EVENT_READ_FAILED) {
		ck_assert_int_eq(last->status, -EACCES);
		ck_assert_ptr_nonnull(strstr(last->message, "Permission"));
		ck_assert_uint_gt(last->time_ns, 0);
		*(uint64_t *)arg += last->events;
	}
}

START_TEST(test_log_remembers_the_last_event_of_each_cause)
{
	struct log *log = log_to_file(EVENT_ERROR, false);
	uint64_t events = 0;

	report(log, (struct event){EVENT_READ_FAILED, .status = -EACCES}, 20);
	log_each(log, count_events, &events);
	ck_assert_uint_eq(events, 20);
	log_free(log);
}
END_TEST

static void *report_many(void *arg)
{
	struct event e = {.kind = EVENT_ORIGIN_RETRY, .path = "f"};

	for (int i = 0; i < 10000; i++) {
		e.kind = (enum event_kind)(i % EVENT_KINDS);
		event_report(log_sink(arg), &e);
	}
	return NULL;
}

START_TEST(test_log_of_many_threads_loses_no_count)
{
	struct log *log = log_to_file(EVENT_INFO, true);
	uint64_t events = 0;
	pthread_t threads[4];
	char *text, *save = NULL;

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, report_many, log), 0);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	log_free(log);
	text = contents(file);
	for (char *line = strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		json_t *o = json_loads(line, 0, NULL);
		const json_t *sum = json_object_get(o, "suppressed");

		ck_assert_ptr_nonnull(o);
		events += sum ? (uint64_t)json_integer_value(sum) : 1;
		json_decref(o);
	}
	ck_assert_uint_eq(events, 40000);
	free(text);
}
END_TEST

START_TEST(test_log_file_is_opened_again)
{
	struct log *log = log_to_file(EVENT_INFO, false);
	struct event e = {.kind = EVENT_ORIGIN_BACK};
	char moved[128], *text;

	(void)snprintf(moved, sizeof(moved), "%s.1", file);
	event_report(log_sink(log), &e);
	log_flush(log);
	ck_assert_int_eq(rename(file, moved), 0);
	ck_assert(log_reopen(log));
	log_flush(log);
	event_report(log_sink(log), &e);
	log_free(log);
	text = contents(file);
	ck_assert_uint_eq(lines_with(text, "\n"), 2);
	ck_assert_uint_eq(lines_with(text, "log file has been reopened"), 1);
	free(text);
	text = contents(moved);
	ck_assert_uint_eq(lines_with(text, "\n"), 1);
	free(text);
}
END_TEST

START_TEST(test_log_file_that_cannot_be_opened_is_refused)
{
	struct log_config config = {"/nowhere/log", "/m", EVENT_INFO, false};
	struct error err = {""};
	struct log *log;

	ck_assert_int_eq(log_new(&log, &config, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "'/nowhere/log'"));
}
END_TEST

START_TEST(test_log_file_that_hangs_holds_up_nobody)
{
	struct event e = {.kind = EVENT_ORIGIN_BACK};
	struct log *log;
	int reader;

	ck_assert_int_eq(mkfifo(file, 0600), 0);
	reader = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(reader, 0);
	log = log_to_file(EVENT_INFO, false);
	for (int i = 0; i < 100000; i++)
		event_report(log_sink(log), &e);
	log_free(log);
	(void)close(reader);
}
END_TEST

/* The log captures the messages of libfuse there while a mount begins and ends.
 */
START_TEST(test_log_has_a_standard_error_of_its_own)
{
	struct log_config config = {NULL, "/m", EVENT_INFO, false};
	struct event e = {.kind = EVENT_ORIGIN_BACK};
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3),
	    null = open("/dev/null", O_WRONLY);
	int own = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct error err = {""};
	struct log *log;
	char *text;

	ck_assert_int_eq(dup2(own, STDERR_FILENO), STDERR_FILENO);
	ck_assert_int_eq(log_new(&log, &config, &err), 0);
	ck_assert_int_eq(log_start(log, &err), 0);
	ck_assert_int_eq(dup2(null, STDERR_FILENO), STDERR_FILENO);
	event_report(log_sink(log), &e);
	log_free(log);
	ck_assert_int_eq(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	text = contents(file);
	ck_assert_uint_eq(lines_with(text, "answers again"), 1);
	free(text);
	(void)close(own);
	(void)close(null);
	(void)close(saved);
}
END_TEST

/* the log to which an event is reported when a file is closed */
static struct log *detaching;

/* The log calls this function in place of that of the C library. */
int close(int fd)
{
	struct event e = {.kind = EVENT_ORIGIN_BACK};
	struct log *log = detaching;

	detaching = NULL;
	if (log)
		event_report(log_sink(log), &e);
	return (int)syscall(SYS_close, fd);
}

/* Closing can take long on a network file system. */
START_TEST(test_log_takes_events_while_it_leaves_standard_error)
{
	struct log_config config = {NULL, "/m", EVENT_INFO, false};
	struct error err = {""};
	struct log *log;

	ck_assert_int_eq(log_new(&log, &config, &err), 0);
	ck_assert_int_eq(log_start(log, &err), 0);
	detaching = log;
	log_detach(log);
	ck_assert_ptr_null(detaching);
	log_free(log);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *t = case_of(s, "events");

	tcase_add_test(t, test_event_messages_are_of_the_table);
	tcase_add_test(t,
		test_event_message_fits_its_buffer_and_keeps_the_end_of_a_name);
	tcase_add_test(t, test_event_table_says_what_to_do);
	tcase_add_test(t, test_line_has_what_its_place_needs);
	tcase_add_test(t, test_line_of_a_summary_says_how_many_and_since_when);
	tcase_add_test(t, test_line_as_json_is_one_object_whatever_the_name);
	tcase_add_test(t, test_limit_lets_a_burst_pass_then_sums_up);
	tcase_add_loop_test(t,
		test_a_day_of_every_fault_at_once_is_less_than_a_megabyte, 0,
		2);
	t = case_with(s, "log", setup, teardown);
	tcase_add_test(t, test_log_writes_a_line_an_event_and_sums_up_the_rest);
	tcase_add_test(
		t, test_log_writes_a_new_cause_whatever_was_written_before);
	tcase_add_test(
		t, test_log_writes_a_change_of_state_after_many_repetitions);
	tcase_add_test(t, test_log_of_any_number_of_causes_is_bounded);
	tcase_add_test(t, test_log_remembers_the_last_event_of_each_cause);
	tcase_add_test(t, test_log_of_many_threads_loses_no_count);
	tcase_add_test(t, test_log_file_is_opened_again);
	tcase_add_test(t, test_log_file_that_cannot_be_opened_is_refused);
	tcase_add_test(t, test_log_file_that_hangs_holds_up_nobody);
	tcase_add_test(t, test_log_has_a_standard_error_of_its_own);
	tcase_add_test(t, test_log_takes_events_while_it_leaves_standard_error);
	return run_suite(s);
}

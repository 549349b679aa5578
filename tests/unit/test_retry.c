/* SPDX-License-Identifier: MIT */
/*
 * Tests of the retry origin over a faulty synthetic one: what is counted, and
 * what is given up, and when. Time-outs come from small limits, not from
 * sleeps.
 */
#include "origin/layer/layer_impl.h"
#include "origin/local/late_answers.h"
#include "origin_fixture.h"
#include "suite.h"

static struct timers *timers;
static struct counters counters;
static struct origin *fault, *o;

static void open_stack(const char *spec, struct retry_config config)
{
	struct origin *inner;

	config.pause_ns = NS_PER_MS;
	memset(&counters, 0, sizeof(counters));
	ck_assert_int_eq(timers_new(&timers), 0);
	ck_assert_int_eq(origin_synthetic_new(&inner, SPEC, NULL), 0);
	ck_assert_int_eq(
		origin_fault_new(&fault, inner, spec, timers, NULL), 0);
	ck_assert_int_eq(
		origin_retry_new(&o, fault, &config, timers, &counters, NULL),
		0);
}

static void close_stack(void)
{
	ck_assert(origin_free(o));
	timers_free(timers);
}

static void start_below(struct origin *base, struct origin_request *q)
{
	origin_start(layer_of(base)->inner, q);
}

static bool explain_here(struct origin *base, int status, struct error *why)
{
	(void)base;
	if (status == -EIO)
		(void)error_set(why, status, "the layer knows");
	return status == -EIO;
}

START_TEST(test_a_layer_explains_what_it_knows)
{
	static const struct origin_ops ops = {
		.start = start_below, .explain = explain_here};
	struct layer *l = calloc(1, sizeof(*l));
	struct origin *inner;
	struct error why;

	ck_assert_int_eq(origin_synthetic_new(&inner, SPEC, NULL), 0);
	ck_assert_int_eq(layer_init(l, &ops, inner, RANK_RETRY), 0);
	ck_assert(origin_explain(&l->base, -EIO, &why));
	ck_assert_str_eq(why.msg, "the layer knows");
	ck_assert(!origin_explain(&l->base, -ENOENT, &why));
	ck_assert(origin_free(&l->base));
}
END_TEST

START_TEST(test_retry_counts_nothing_when_all_is_well)
{
	struct stat_wait s;

	open_stack("", (struct retry_config){0});
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 1000, NULL), 1000);
	ck_assert_int_eq(stat_once(o, "nothing", &s), -ENOENT);
	ck_assert_uint_eq(counters.origin_retries, 0);
	ck_assert_uint_eq(counters.origin_errors, 0);
	ck_assert_uint_eq(counters.origin_timeouts, 0);
	ck_assert_uint_eq(counters.origin_failures, 0);
	ck_assert_uint_eq(counters.origin_stats, 1);
	close_stack();
}
END_TEST

START_TEST(test_retry_reports_io_error_after_all_tries)
{
	open_stack("error=1", (struct retry_config){.attempts = 4});
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 1000, NULL), -EIO);
	ck_assert_uint_eq(counters.origin_errors, 4);
	ck_assert_uint_eq(counters.origin_retries, 3);
	ck_assert_uint_eq(counters.origin_failures, 1);
	ck_assert_uint_eq(counters.origin_timeouts, 0);
	close_stack();
}
END_TEST

/* Each attempt delivers half of the bytes that are left, except for the last
 * byte. */
START_TEST(test_retry_goes_on_where_a_read_was_cut)
{
	struct origin_file *f;
	struct read_wait w;

	/* There are fewer attempts than interruptions; the last byte has 2 s of
	 * attempts. */
	open_stack("short=1",
		(struct retry_config){
			.attempts = 8, .pause_ns = 20 * NS_PER_MS});
	f = origin_file_new(o, file_path(0));
	read_begin(o, &w, f, version, 5, 1000);
	/* the attempts deliver 500, 250, ... bytes, down to 1 of 2 */
	while (counters.origin_retries < 9)
		/* this waits for a condition; the time does not matter */
		(void)usleep(100);
	ck_assert_int_eq(origin_fault_set(fault, "", NULL), 0);
	ck_assert_int_eq(read_end(&w), 1000);
	check_bytes(file_path(0), 5, 1000, w.data);
	ck_assert_uint_ge(w.calls, 10);
	ck_assert_uint_eq(counters.origin_retry_bytes, 0);
	free(w.data);
	origin_file_free(o, f);
	close_stack();
}
END_TEST

START_TEST(test_retry_gives_up_a_read_that_gets_no_further)
{
	struct origin_file *f;
	struct read_wait w;

	open_stack("short=1", (struct retry_config){.attempts = 3});
	f = origin_file_new(o, file_path(0));
	read_begin(o, &w, f, version, 5, 1000);
	ck_assert_int_eq(origin_fault_set(fault, "error=1", NULL), 0);
	ck_assert_int_eq(read_end(&w), -EIO);
	ck_assert_uint_ge(w.got, 500);
	ck_assert_uint_ge(counters.origin_errors, 3);
	origin_file_free(o, f);
	close_stack();
}
END_TEST

START_TEST(test_retry_reports_timeout_of_an_origin_that_never_answers)
{
	open_stack("stall=1",
		(struct retry_config){
			.attempt_ns = 10 * NS_PER_MS, .attempts = 3});
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 1000, NULL), -ETIMEDOUT);
	ck_assert_uint_eq(counters.origin_timeouts, 3);
	ck_assert_uint_eq(counters.origin_retries, 2);
	ck_assert_uint_eq(counters.origin_failures, 1);
	ck_assert_uint_eq(counters.origin_errors, 0);
	close_stack();
}
END_TEST

START_TEST(test_retry_ends_at_its_total_bound)
{
	uint64_t begun_ns = clock_now_ns();

	open_stack("stall=1",
		(struct retry_config){.attempt_ns = 20 * NS_PER_MS,
			.total_ns = 50 * NS_PER_MS,
			.attempts = 1000});
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 1000, NULL), -ETIMEDOUT);
	ck_assert_uint_ge(clock_now_ns() - begun_ns, 50 * NS_PER_MS);
	/* Three attempts must be in flight, unless the machine is too busy to
	 * send them in time. */
	ck_assert_uint_ge(counters.origin_timeouts, 1);
	ck_assert_uint_le(counters.origin_timeouts, 3);
	close_stack();
}
END_TEST

START_TEST(test_retry_goes_on_when_the_origin_returns)
{
	struct origin_file *f;
	struct read_wait w;

	open_stack("stall=1",
		(struct retry_config){
			.attempt_ns = 5 * NS_PER_MS, .attempts = 100000});
	f = origin_file_new(o, file_path(2));
	read_begin(o, &w, f, version, 77, 5000);
	while (counters.origin_timeouts < 3)
		/* this waits for a condition; the time does not matter */
		(void)usleep(100);
	ck_assert_int_eq(origin_fault_set(fault, "", NULL), 0);
	ck_assert_int_eq(read_end(&w), 5000);
	check_bytes(file_path(2), 77, 5000, w.data);
	free(w.data);
	origin_file_free(o, f);
	close_stack();
}
END_TEST

/* number of events that report that the source answers again */
static unsigned backs;

static void count_backs(void *arg, const struct event *e)
{
	(void)arg;
	backs += e->kind == EVENT_ORIGIN_BACK;
}

START_TEST(test_a_name_that_is_found_is_no_answer_for_reads_that_fail)
{
	static const struct event_sink sink = {count_backs, NULL};
	struct stat_wait s;

	open_stack("error=1",
		(struct retry_config){.attempts = 1, .events = &sink});
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 1000, NULL), -EIO);
	/* Without meta=1, faults affect only reads. */
	ck_assert_int_eq(stat_once(o, file_path(0), &s), 0);
	ck_assert_uint_eq(backs, 0);
	ck_assert_int_eq(origin_fault_set(fault, "", NULL), 0);
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 1000, NULL), 1000);
	ck_assert_uint_eq(backs, 1);
	/* A look-up that was not answered in time is answered by another
	 * attempt. */
	ck_assert_int_eq(origin_fault_set(fault, "error=1,meta=1", NULL), 0);
	ck_assert_int_eq(stat_once(o, file_path(0), &s), -EIO);
	ck_assert_int_eq(origin_fault_set(fault, "", NULL), 0);
	ck_assert_int_eq(stat_once(o, file_path(0), &s), 0);
	ck_assert_uint_eq(backs, 2);
	close_stack();
}
END_TEST

START_TEST(test_retry_abandons_a_stalled_read_at_once)
{
	struct origin_file *f;
	struct read_wait w;

	open_stack("stall=1", (struct retry_config){0});
	f = origin_file_new(o, file_path(2));
	read_begin(o, &w, f, version, 77, 5000);
	origin_read_abandon(o, &w.r);
	ck_assert_int_eq(read_end(&w), -ECANCELED);
	origin_read_abandon(o, &w.r); /* the read has ended already */
	origin_file_free(o, f);
	close_stack();
	ck_assert_uint_eq(w.done, 1);
}
END_TEST

START_TEST(test_retry_lists_whole_directories_in_spite_of_errors)
{
	open_stack("error=0.5,meta=1,seed=9",
		(struct retry_config){.attempts = 50});
	for (unsigned i = 0; i < 8; i++) {
		struct list_wait l;

		ck_assert_int_eq(list_once(o, "d0001", &l), 0);
		ck_assert_uint_eq(l.n, FILES / DIRS);
		list_forget(&l);
	}
	ck_assert_uint_gt(counters.origin_errors, 0);
	ck_assert_uint_eq(counters.origin_errors, counters.origin_retries);
	ck_assert_uint_eq(counters.origin_lists, 8 + counters.origin_retries);
	close_stack();
}
END_TEST

START_TEST(test_retry_stays_while_the_origin_still_hangs)
{
	struct list_wait l;

	open_stack("stall=1,meta=1",
		(struct retry_config){
			.attempt_ns = 5 * NS_PER_MS, .attempts = 2});
	ck_assert_int_eq(list_once(o, "d0001", &l), -ETIMEDOUT);
	list_forget(&l);
	ck_assert(!origin_free(o));
	ck_assert_int_eq(origin_fault_set(fault, "", NULL), 0);
	ck_assert(origin_free(o));
	timers_free(timers);
}
END_TEST

START_TEST(test_retry_takes_changed_files_for_an_answer)
{
	struct file_version newer = {SIZE_BYTES, MTIME_NS + 1, 0};

	open_stack("", (struct retry_config){0});
	ck_assert_int_eq(
		read_once(o, file_path(0), newer, 0, 1000, NULL), -ESTALE);
	ck_assert_uint_eq(counters.origin_errors, 0);
	close_stack();
}
END_TEST

static const char *const bad_specs[] = {"error", "error=2", "error=x",
	"delay=5", "delay=-1s", "colour=red", "rate=", "seed=x"};

START_TEST(test_fault_refuses_bad_specifications)
{
	struct error err = {""};

	open_stack("", (struct retry_config){0});
	ck_assert_int_eq(origin_fault_set(fault, bad_specs[_i], &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "fault '"));
	close_stack();
}
END_TEST

START_TEST(test_an_unknown_fault_is_answered_with_the_known_ones)
{
	struct error err = {""};

	open_stack("", (struct retry_config){0});
	ck_assert_int_eq(origin_fault_set(fault, "colour=red", &err), -EINVAL);
	ck_assert_str_eq(err.msg,
		"fault 'colour=red': unknown word 'colour'; known are delay, "
		"error, short, pieces, crash, stall, rate, meta, match and "
		"seed");
	close_stack();
}
END_TEST

START_TEST(test_fault_hits_only_paths_that_match)
{
	open_stack(
		"error=1,match=f000001", (struct retry_config){.attempts = 1});
	ck_assert_int_eq(
		read_once(o, file_path(0), version, 0, 1000, NULL), 1000);
	ck_assert_int_eq(
		read_once(o, file_path(1), version, 0, 1000, NULL), -EIO);
	close_stack();
}
END_TEST

/* -- An origin by hand -- */

static struct hand {
	struct origin o;
	/* guarded by fixture_lock, like the next member */
	struct origin_read *read[4];
	unsigned n;
} hand;

static struct origin_file *hand_file_new(struct origin *h, const char *path)
{
	(void)h;
	return (struct origin_file *)(void *)strdup(path);
}

static void hand_file_free(struct origin *h, struct origin_file *f)
{
	(void)h;
	free(f);
}

static void hand_start(struct origin *h, struct origin_request *q)
{
	(void)h;
	pthread_mutex_lock(&fixture_lock);
	hand.read[hand.n++] = CONTAINER_OF(q, struct origin_read, req);
	pthread_cond_broadcast(&fixture_some);
	pthread_mutex_unlock(&fixture_lock);
}

/* An abandon that hangs: the read is answered when the test says so. */
static void hand_abandon(struct origin *h, struct origin_read *r)
{
	(void)h;
	(void)r;
}

static bool hand_free(struct origin *h)
{
	(void)h;
	return true;
}

static const struct origin_ops hand_ops = {
	.file_new = hand_file_new,
	.file_free = hand_file_free,
	.start = hand_start,
	.abandon = hand_abandon,
	.free = hand_free,
};

static struct origin_read *hand_take(unsigned i)
{
	pthread_mutex_lock(&fixture_lock);
	while (hand.n <= i)
		pthread_cond_wait(&fixture_some, &fixture_lock);
	pthread_mutex_unlock(&fixture_lock);
	return hand.read[i];
}

/* Deliver the next `n` bytes of a read, whose values are computed from their
 * offsets. */
static void hand_give(struct origin_read *r, uint64_t off, size_t n)
{
	unsigned char bytes[64];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (unsigned char)(off + i);
	r->data(r, off, bytes, n);
}

START_TEST(test_retry_hears_only_the_attempt_that_counts)
{
	struct retry_config config = {
		.attempt_ns = NS_PER_S / 2, .attempts = 1000};
	struct origin_read *first, *second;
	struct origin_file *f;
	struct read_wait w;

	hand.o.ops = &hand_ops;
	memset(&counters, 0, sizeof(counters));
	ck_assert_int_eq(timers_new(&timers), 0);
	ck_assert_int_eq(
		origin_retry_new(&o, &hand.o, &config, timers, &counters, NULL),
		0);
	f = origin_file_new(o, "f");
	read_begin(o, &w, f, version, 100, 60);
	first = hand_take(0);
	hand_give(first, 100, 20);
	second = hand_take(1);
	ck_assert_uint_eq(second->off, 120);
	ck_assert_uint_eq(second->len, 40);
	hand_give(first, 120, 5);
	hand_give(second, 120, 40);
	second->req.done(&second->req, 0);
	ck_assert_int_eq(read_end(&w), 60);
	for (unsigned i = 0; i < 60; i++)
		ck_assert_uint_eq(w.data[i], 100 + i);
	first->lost_bytes = 7;
	first->req.done(&first->req, -ECANCELED);
	ck_assert_uint_eq(counters.origin_retry_bytes, 5 + 7);
	free(w.data);
	origin_file_free(o, f);
	close_stack();
}
END_TEST

/* Entries that came before an error come again after it. */
START_TEST(test_retry_begins_a_listing_anew)
{
	struct retry_config config = {.pause_ns = NS_PER_MS, .attempts = 1000};
	struct file_entry entries[] = {{.name = "a"}, {.name = "b"}};
	struct list_wait w = {
		.l = {.req.done = list_wait_done,
			.path = "d",
			.batch = list_wait_batch,
			.restart = list_wait_restart},
	};
	struct origin_list *l;

	hand.o.ops = &hand_ops;
	hand.n = 0;
	memset(&counters, 0, sizeof(counters));
	ck_assert_int_eq(timers_new(&timers), 0);
	ck_assert_int_eq(
		origin_retry_new(&o, &hand.o, &config, timers, &counters, NULL),
		0);
	origin_list(o, &w.l);
	l = origin_list_of(&hand_take(0)->req);
	l->batch(l, entries, 1);
	l->req.done(&l->req, -EIO);
	l = origin_list_of(&hand_take(1)->req);
	l->batch(l, entries, 2);
	l->req.done(&l->req, 0);
	pthread_mutex_lock(&fixture_lock);
	while (!w.done)
		pthread_cond_wait(&fixture_some, &fixture_lock);
	pthread_mutex_unlock(&fixture_lock);
	ck_assert_int_eq(w.status, 0);
	ck_assert_uint_eq(w.n, 2);
	ck_assert_str_eq(w.seen[0].name, "a");
	ck_assert_str_eq(w.seen[1].name, "b");
	ck_assert_uint_eq(counters.origin_retries, 1);
	list_forget(&w);
	close_stack();
}
END_TEST

/* -- Answers for want of memory -- */

struct late_wait {
	struct origin_request q;
	bool done; /* guarded by fixture_lock, like the next member */
	void *priv;
};

static void late_done(struct origin_request *q, int status)
{
	struct late_wait *w = CONTAINER_OF(q, struct late_wait, q);

	ck_assert_int_eq(status, -ENOMEM);
	pthread_mutex_lock(&fixture_lock);
	w->priv = q->priv;
	w->done = true;
	pthread_cond_broadcast(&fixture_some);
	pthread_mutex_unlock(&fixture_lock);
}

/* If an answer left data in the request, an abandon at this moment would take
 * it for its own data. */
START_TEST(test_late_answers_leave_nothing_of_theirs_in_the_request)
{
	struct late_wait w[3] = {0};
	struct late *l;

	ck_assert_int_eq(late_new(&l), 0);
	for (int i = 0; i < 3; i++) {
		w[i].q.done = late_done;
		late_answer(l, &w[i].q);
	}
	pthread_mutex_lock(&fixture_lock);
	for (int i = 0; i < 3; i++) {
		while (!w[i].done)
			pthread_cond_wait(&fixture_some, &fixture_lock);
		ck_assert_ptr_null(w[i].priv);
	}
	pthread_mutex_unlock(&fixture_lock);
	late_free(l);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("retry");
	TCase *tc = case_of(suite, "retry");

	tcase_add_test(tc, test_a_layer_explains_what_it_knows);
	tcase_add_test(tc, test_retry_counts_nothing_when_all_is_well);
	tcase_add_test(tc, test_retry_reports_io_error_after_all_tries);
	tcase_add_test(tc, test_retry_goes_on_where_a_read_was_cut);
	tcase_add_test(tc, test_retry_gives_up_a_read_that_gets_no_further);
	tcase_add_test(tc, test_retry_hears_only_the_attempt_that_counts);
	tcase_add_test(tc, test_retry_begins_a_listing_anew);
	tcase_add_test(
		tc, test_retry_reports_timeout_of_an_origin_that_never_answers);
	tcase_add_test(tc, test_retry_ends_at_its_total_bound);
	tcase_add_test(tc, test_retry_goes_on_when_the_origin_returns);
	tcase_add_test(
		tc, test_a_name_that_is_found_is_no_answer_for_reads_that_fail);
	tcase_add_test(tc, test_retry_abandons_a_stalled_read_at_once);
	tcase_add_test(
		tc, test_retry_lists_whole_directories_in_spite_of_errors);
	tcase_add_test(tc, test_retry_stays_while_the_origin_still_hangs);
	tcase_add_test(tc, test_retry_takes_changed_files_for_an_answer);
	tcase_add_loop_test(tc, test_fault_refuses_bad_specifications, 0,
		(int)(sizeof(bad_specs) / sizeof(bad_specs[0])));
	tcase_add_test(
		tc, test_an_unknown_fault_is_answered_with_the_known_ones);
	tcase_add_test(tc, test_fault_hits_only_paths_that_match);
	tcase_add_test(
		tc, test_late_answers_leave_nothing_of_theirs_in_the_request);
	return run_suite(suite);
}

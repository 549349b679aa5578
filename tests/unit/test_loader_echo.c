/* SPDX-License-Identifier: MIT */
/*
 * Tests of a loader with REFRAIN_ECHO_AUTO between an upstream and a trainer of
 * known speed: decode() sleeps for a time that the test sets, and the test
 * sleeps between batches. The test measures how long both sleeps really took,
 * and computes the expected result from that. A busy machine also delays
 * wake-ups by times that change, which no loader can follow. So a run that
 * fails is repeated with all times doubled, and a run in which sleeps ended too
 * late is ignored.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <refrain/loader.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "suite.h"

#define RECORDS 12000
#define RECORD 8
#define BATCH 16
#define WINDOW 256
#define FRESH (WINDOW - BATCH) /* number of fresh examples in a window */
/* The step of the first try; it is longer if a sanitizer slows down each
 * example. */
#define STEP_NS ((TIME_LIMIT_FACTOR > 1 ? 8 : 2) * NS_PER_MS)
#define MAX_ECHO 4.
#define TRIES 4
/* maximum number of runs that fail without a disturbance by other programs */
#define FAILED_MAX 2
#define WAKE_NS (NS_PER_MS / 4) /* the time that a wake-up may take */
/* a run was disturbed if more than this share of its time was late */
#define LATE_PCT 3

static char path[64];

/* -- The upstream and the trainer ------------------------------------------ */

struct upstream {
	/* time that decode() sleeps for one example */
	atomic_ullong sleep_ns;
	/* total time of these sleeps, and number of examples */
	atomic_ullong took_ns, count;
	/* total time by which sleeps ended too late */
	atomic_ullong late_ns;
};

/* Sleep until a time, without the 50 us that the kernel may add. */
static void sleep_until(struct upstream *u, uint64_t ns)
{
	struct timespec until = {
		(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
	uint64_t now_ns;

	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
		EINTR)
		;
	now_ns = clock_now_ns();
	if (now_ns > ns + WAKE_NS)
		atomic_fetch_add(&u->late_ns, now_ns - ns - WAKE_NS);
}

static int slow_decode(void *ctx, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	struct upstream *u = ctx;
	uint64_t begun_ns = clock_now_ns(), ns = atomic_load(&u->sleep_ns);

	memcpy(out->data, in->data, in->bytes);
	out->bytes = in->bytes;
	if (ns)
		sleep_until(u, begun_ns + ns);
	atomic_fetch_add(&u->took_ns, clock_now_ns() - begun_ns);
	atomic_fetch_add(&u->count, 1);
	return 0;
}

struct run {
	struct upstream upstream;
	struct refrain_loader *l;
	struct hash_stream *pixels;
	uint64_t trainer_ns; /* duration of a step */
	uint64_t fresh, steps, step_ns, wait_ns, begun_ns, last_ns;
	char log[4096];
};

static struct refrain_config config_of(struct run *r)
{
	struct refrain_config c;

	refrain_config_init(&c);
	c.dataset = path;
	c.source = REFRAIN_SOURCE_RAW;
	c.record_bytes = RECORD;
	c.batch = BATCH;
	c.window = WINDOW;
	c.reads_ahead = 16;
	c.threads = 1;
	c.seed = 11;
	c.memory_bytes = 64 << 20;
	c.decode = slow_decode;
	c.decoded_max_bytes = c.sample_bytes = RECORD;
	c.ctx = &r->upstream;
	c.echo = REFRAIN_ECHO_AUTO;
	return c;
}

static void run_open(struct run *r, const struct refrain_config *c)
{
	int rc = refrain_open(&r->l, c);

	ck_assert_msg(rc == 0, "%d: %s", rc, refrain_message(NULL));
	r->begun_ns = clock_now_ns();
	r->pixels = hash_stream_new();
	ck_assert_ptr_nonnull(r->pixels);
}

static struct refrain_stats stats_of(struct run *r)
{
	struct refrain_stats st = {.size = sizeof(st)};

	ck_assert_int_eq(refrain_stats_get(r->l, &st), 0);
	return st;
}

static void run_close(struct run *r)
{
	ck_assert_int_eq(refrain_close(r->l), 0);
	hash_stream_free(r->pixels);
}

/* Run one step whose trainer takes step_ns. Returns false at the end. */
static bool one_step(struct run *r, uint64_t step_ns)
{
	uint64_t asked_ns = clock_now_ns(), now_ns;
	const struct refrain_batch *b;
	int rc = refrain_next(r->l, &b, 60000);

	ck_assert_msg(rc >= 0, "%d: %s", rc, refrain_message(r->l));
	if (!rc)
		return false;
	now_ns = clock_now_ns();
	r->wait_ns += now_ns - asked_ns;
	r->fresh += b->fresh;
	r->steps++;
	hash_stream_add(r->pixels, b->data, b->data_bytes);
	hash_stream_add(r->pixels, b->seeds, b->count * sizeof(*b->seeds));
	refrain_release(b);
	if (step_ns)
		sleep_until(&r->upstream, now_ns + step_ns);
	r->last_ns = clock_now_ns();
	r->step_ns += r->last_ns - now_ns;
	return true;
}

static bool run_windows(struct run *r, double windows)
{
	uint64_t until = r->fresh + (uint64_t)(windows * FRESH);

	while (r->fresh < until)
		if (!one_step(r, r->trainer_ns))
			return false;
	return true;
}

/* Set the speed of the upstream: a batch takes `ratio` steps. */
static void set_ratio(struct run *r, double ratio)
{
	atomic_store(&r->upstream.sleep_ns,
		(unsigned long long)(ratio * (double)r->trainer_ns / BATCH));
}

/* -- What is to hold ------------------------------------------------------- */

struct seen {
	double up_ns, down_ns, r, echo, rate, stalled;
};

/* Run some more windows, and record the results. */
static void look(struct run *r, double windows, struct seen *s)
{
	uint64_t steps = r->steps, step_ns = r->step_ns, wait_ns = r->wait_ns;
	uint64_t took_ns = atomic_load(&r->upstream.took_ns);
	uint64_t count = atomic_load(&r->upstream.count), from_ns = r->last_ns;
	double ns, n;

	ck_assert(run_windows(r, windows));
	n = (double)(r->steps - steps);
	ns = (double)(r->last_ns - from_ns);
	s->up_ns = (double)(atomic_load(&r->upstream.took_ns) - took_ns) *
		BATCH / (double)(atomic_load(&r->upstream.count) - count);
	s->down_ns = (double)(r->step_ns - step_ns) / n;
	s->r = s->up_ns / s->down_ns;
	s->rate = n / ns;
	s->stalled = (double)(r->wait_ns - wait_ns) / ns;
	s->echo = stats_of(r).echo_factor;
}

static double clamped(double r)
{
	return fmin(fmax(r, 1), MAX_ECHO);
}

/* Does the result meet requirement E8, in the factor and in the rate of steps?
 */
static bool followed(const struct seen *s)
{
	double least = fmin(1 / s->down_ns, MAX_ECHO / s->up_ns);
	bool ok = fabs(s->echo - clamped(s->r)) <= 0.15 * clamped(s->r) &&
		s->rate >= 0.9 * least;

	(void)printf("r %.2f: e %.3f, %.2f of the rate, stalled %.1f %%%s\n",
		s->r, s->echo, s->rate / least, 100 * s->stalled,
		ok ? "" : " (not so)");
	return ok;
}

/* Returns the share of the time that no factor can hide, computed from the
 * measured times. */
static double least_stalled(const struct seen *s, double most)
{
	return fmax(0, 1 - most / s->r);
}

/* Was the run hardly disturbed by other programs? */
static bool undisturbed(struct run *r)
{
	uint64_t late_ns = atomic_load(&r->upstream.late_ns);
	uint64_t all_ns = r->last_ns - r->begun_ns;

	(void)printf("%.1f %% late\n", 100. * (double)late_ns / (double)all_ns);
	return late_ns * 100 < LATE_PCT * all_ns;
}

/* Follow upstreams of several speeds, one after the other. */
static bool follows_all(struct run *r)
{
	static const double ratios[] = {3.8, 0.5, 2.1, 3.2, 0.8, 1.5};
	bool ok = true;

	for (unsigned i = 0; ok && i < sizeof(ratios) / sizeof(*ratios); i++) {
		struct seen s;

		set_ratio(r, ratios[i]);
		ck_assert(run_windows(r, i ? 3 : 4));
		look(r, 1, &s);
		ok = followed(&s);
		if (s.r <= 1)
			ok = ok && s.echo == 1.;
	}
	return ok;
}

static void finish(struct run *r, struct refrain_stats *st, uint64_t *pixels)
{
	atomic_store(&r->upstream.sleep_ns, 0);
	while (one_step(r, 0))
		;
	ck_assert_int_ge(refrain_echo_log(r->l, r->log, sizeof(r->log)), 0);
	ck_assert_uint_eq(stats_of(r).errors, 0);
	*st = stats_of(r);
	*pixels = hash_stream_value(r->pixels);
	run_close(r);
}

static void replays(const struct refrain_stats *st, uint64_t pixels,
	const char *log, uint32_t threads)
{
	struct run r = {0};
	struct refrain_config c = config_of(&r);
	struct refrain_stats again;
	uint64_t pixels_again;

	c.echo_log = log;
	c.threads = threads;
	run_open(&r, &c);
	finish(&r, &again, &pixels_again);
	ck_assert_uint_eq(again.stream_hash, st->stream_hash);
	ck_assert_uint_eq(pixels_again, pixels);
	ck_assert_uint_eq(again.echo_changes, st->echo_changes);
	ck_assert_uint_eq(again.steps, st->steps);
	ck_assert_str_eq(r.log, log);
}

START_TEST(test_follows_the_upstream_and_the_log_makes_the_same_stream)
{
	struct refrain_stats st = {0};
	uint64_t pixels = 0;
	unsigned failed = 0;
	bool ok = false;

	for (unsigned i = 0; !ok && i < TRIES; i++) {
		struct run r = {.trainer_ns = STEP_NS << i};
		struct refrain_config c = config_of(&r);

		run_open(&r, &c);
		ok = follows_all(&r);
		failed += !ok && undisturbed(&r);
		finish(&r, &st, &pixels);
		/* Upstreams that are all too slow have the same factor. */
		ok = ok && st.echo_changes >= 5;
		ck_assert_uint_eq(st.fresh, RECORDS);
		if (ok || i + 1 == TRIES)
			replays(&st, pixels, r.log, 3);
	}
	ck_assert(ok || failed < FAILED_MAX);
}
END_TEST

START_TEST(test_hardly_stalls_where_no_echo_stalls_most_of_the_time)
{
	unsigned failed = 0;
	bool ok = false;

	for (unsigned i = 0; !ok && i < TRIES; i++) {
		struct run with = {.trainer_ns = STEP_NS << i};
		struct run without = {.trainer_ns = STEP_NS << i};
		struct refrain_config c = config_of(&with);
		struct seen a, b;

		set_ratio(&with, 3.8);
		run_open(&with, &c);
		ck_assert(run_windows(&with, 3));
		look(&with, 2, &a);
		run_close(&with);
		c = config_of(&without);
		c.echo = 1;
		set_ratio(&without, 3.8);
		run_open(&without, &c);
		ck_assert(run_windows(&without, 1));
		look(&without, 1, &b);
		run_close(&without);
		ok = followed(&a) &&
			a.stalled < least_stalled(&a, MAX_ECHO) + 0.03 &&
			b.stalled > least_stalled(&b, 1) - 0.06;
		(void)printf("stalled %.1f %% with e %.2f, %.1f %% with 1\n",
			100 * a.stalled, a.echo, 100 * b.stalled);
		failed += !ok && undisturbed(&with) && undisturbed(&without);
	}
	ck_assert(ok || failed < FAILED_MAX);
}
END_TEST

/* -- Going on, and what is refused ----------------------------------------- */

/* Cut a log after some lines, because changes may have been made after the
 * save. */
static void cut(char *log, uint64_t lines)
{
	for (; lines > 0; lines--) {
		log = strchr(log, '\n');
		ck_assert_ptr_nonnull(log);
		log++;
	}
	*log = '\0';
}

START_TEST(test_goes_on_from_a_state_and_its_log)
{
	struct run a = {.trainer_ns = STEP_NS}, all = {0}, last = {0};
	struct run b = {.trainer_ns = STEP_NS};
	struct refrain_config c = config_of(&a);
	uint8_t state[REFRAIN_STATE_MAX];
	struct refrain_stats st, st_all;
	uint64_t pixels, before;
	char log[8192];
	bool disturbed;
	int n;

	run_open(&a, &c);
	set_ratio(&a, 2.5);
	ck_assert(run_windows(&a, 4));
	n = refrain_save(a.l, state, sizeof(state));
	ck_assert_int_gt(n, 0);
	ck_assert_int_ge(refrain_echo_log(a.l, log, sizeof(log)), 0);
	c = config_of(&b);
	c.state = state;
	c.state_bytes = (size_t)n;
	run_open(&b, &c);
	before = stats_of(&b).echo_changes;
	ck_assert(before >= 1 || !undisturbed(&a));
	cut(log, before);
	ck_assert_double_eq(stats_of(&b).echo_factor, stats_of(&a).echo_factor);
	set_ratio(&b, 0.3);
	while (stats_of(&b).echo_changes == before && run_windows(&b, 1))
		;
	disturbed = !undisturbed(&b);
	finish(&b, &st, &pixels);
	ck_assert(st.echo_changes > before || disturbed);
	(void)strcat(log, b.log);
	/* The whole run is repeated from its two logs, and ends like the
	 * restored run. */
	c = config_of(&all);
	c.echo_log = log;
	run_open(&all, &c);
	while (all.steps < a.steps)
		ck_assert(one_step(&all, 0));
	n = refrain_save(all.l, state, sizeof(state));
	ck_assert_int_gt(n, 0);
	finish(&all, &st_all, &pixels);
	ck_assert_uint_eq(st_all.steps, a.steps + st.steps);
	ck_assert_uint_eq(st_all.fresh, RECORDS);
	/* A run that continues with the log alone ends in the same way. */
	c = config_of(&last);
	c.echo_log = log;
	c.state = state;
	c.state_bytes = (size_t)n;
	run_open(&last, &c);
	finish(&last, &st_all, &pixels);
	ck_assert_uint_eq(st_all.stream_hash, st.stream_hash);
	run_close(&a);
}
END_TEST

static void refused(const struct refrain_config *c, int rc, const char *why)
{
	struct refrain_loader *l;

	ck_assert_int_eq(refrain_open(&l, c), rc);
	ck_assert_msg(strstr(refrain_message(NULL), why), "'%s' without '%s'",
		refrain_message(NULL), why);
}

START_TEST(test_refuses_what_cannot_be_followed)
{
	struct run r = {0};
	struct refrain_config c = config_of(&r);

	c.world = 2;
	refused(&c, -EINVAL, "echo_log");
	c.echo_log = "";
	ck_assert_int_eq(refrain_open(&r.l, &c), 0);
	ck_assert_int_eq(refrain_close(r.l), 0);
	c = config_of(&r);
	c.window = 160;
	refused(&c, -EINVAL, "at least 192");
	c = config_of(&r);
	c.echo = 2;
	c.echo_max = 3;
	refused(&c, -EINVAL, "echo_max is set");
	c = config_of(&r);
	c.echo_log = "100 2/1\nfrom here\n";
	refused(&c, -EINVAL, "line 2");
	c.echo_log = "100 2/1 \n";
	refused(&c, -EINVAL, "line 1");
	c = config_of(&r);
	c.echo_max = 65;
	refused(&c, -EINVAL, "echo_max");
}
END_TEST

START_TEST(test_a_log_of_another_run_stops_it)
{
	struct run r = {0};
	struct refrain_config c = config_of(&r);
	const struct refrain_batch *b;
	int rc;

	c.echo_log = "100 2/1\n90 3/1\n";
	run_open(&r, &c);
	while ((rc = refrain_next(r.l, &b, 60000)) > 0)
		refrain_release(b);
	ck_assert_int_eq(rc, -ESTALE);
	ck_assert_ptr_nonnull(strstr(refrain_message(r.l), "line 2"));
	run_close(&r);
}
END_TEST

static void make_records(void)
{
	(void)snprintf(path, sizeof(path), "test_loader_echo.XXXXXX");
	CLEANUP_FD int fd = mkostemp(path, O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	for (uint64_t i = 0; i < RECORDS; i++)
		ck_assert_int_eq(write(fd, &i, RECORD), RECORD);
}

static void remove_records(void)
{
	(void)unlink(path);
}

static Suite *suite(void)
{
	const TTest *const tests[] = {
		test_follows_the_upstream_and_the_log_makes_the_same_stream,
		test_hardly_stalls_where_no_echo_stalls_most_of_the_time,
		test_goes_on_from_a_state_and_its_log,
		test_refuses_what_cannot_be_followed,
		test_a_log_of_another_run_stops_it,
	};
	Suite *s = suite_create("loader_echo");
	TCase *tc = case_of(s, "auto");

	tcase_add_unchecked_fixture(tc, make_records, remove_records);
	case_add(tc, tests, sizeof(tests) / sizeof(*tests));
	return s;
}

int main(void)
{
	return run_suite(suite());
}

/* SPDX-License-Identifier: MIT */
/* Tests of the factor that an echo stage finds, with a simulated source and a
 * simulated trainer, and of the log and the states of its changes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "loader/api/echo_stage_impl.h"
#include "suite.h"

#define BATCH 32
#define DOWN_NS (1 * NS_PER_MS) /* time of the trainer for a serving */

static uint64_t clock_ns;

static uint64_t now(void)
{
	return clock_ns;
}

/* A source. Its workers have at most `ahead` examples ready; if that is 0, it
 * has no workers and works only during pulls. */
struct plant {
	struct refrain_echo *e;
	double up_ns; /* time that the source takes for an example */
	/* time that a pull takes for an example that is ready */
	uint64_t pull_ns;
	uint32_t ahead;
	double ready_at_ns; /* time when the next example will be ready */
	/* percentage by which the time of an example varies */
	uint64_t noise;
	uint64_t dice;
	uint64_t examples; /* number of examples in an epoch */
	uint64_t waited_ns;
};

static double noisy(struct plant *p, double ns)
{
	p->dice = p->dice * UINT64_C(6364136223846793005) + 1;
	return p->noise ? ns *
			(1 +
				((double)(p->dice >> 33 & 255) / 127.5 - 1) *
					(double)p->noise / 100)
			: ns;
}

/* The workers may have finished an example in the past. But they stop when
 * `ahead` examples are ready. */
static void pull_one(struct plant *p)
{
	double began = p->ready_at_ns, at = (double)clock_ns;
	double up_ns = noisy(p, p->up_ns);

	if (!p->ahead) {
		clock_ns += (uint64_t)up_ns;
		return;
	}
	if (began < at - p->ahead * p->up_ns)
		began = at - p->ahead * p->up_ns;
	p->ready_at_ns = began + up_ns;
	if (p->ready_at_ns > at) {
		p->waited_ns += (uint64_t)(p->ready_at_ns - at);
		clock_ns = (uint64_t)p->ready_at_ns;
	}
	clock_ns += p->pull_ns;
}

/* Make one serving. Returns false at the end of the epoch. */
static bool serve(struct plant *p, struct refrain_serving *s)
{
	int rc;

	*s = (struct refrain_serving){.size = sizeof(*s)};
	while ((rc = refrain_echo_next(p->e, s)) == REFRAIN_ECHO_PULL) {
		if (p->examples && s->example >= p->examples) {
			ck_assert_int_eq(refrain_echo_ended(p->e), 0);
			continue;
		}
		pull_one(p);
		ck_assert_int_eq(refrain_echo_pulled(p->e), 0);
	}
	ck_assert_int_ge(rc, 0);
	if (rc == REFRAIN_ECHO_END)
		return false;
	ck_assert_int_eq(refrain_echo_served(p->e), 0);
	clock_ns += (uint64_t)noisy(p, DOWN_NS);
	return true;
}

static struct refrain_config auto_config(void)
{
	struct refrain_config c;

	refrain_config_init(&c);
	c.batch = BATCH;
	c.echo = REFRAIN_ECHO_AUTO;
	return c;
}

static void open_plant(struct plant *p, const struct refrain_config *c)
{
	struct error err;

	clock_ns = NS_PER_S;
	p->ready_at_ns = (double)clock_ns;
	ck_assert_int_eq(stage_open(&p->e, c, 0, now, &err), 0);
}

static struct refrain_echo_stats stats_of(const struct plant *p)
{
	struct refrain_echo_stats s = {.size = sizeof(s)};

	ck_assert_int_eq(refrain_echo_stats_get(p->e, &s), 0);
	return s;
}

/* Serve this many fresh examples. Returns the number of servings per second. */
static double run_fresh(struct plant *p, uint64_t fresh)
{
	uint64_t until = stats_of(p).fresh + fresh, n = 0, began_ns = clock_ns;
	struct refrain_serving s;

	while (stats_of(p).fresh < until) {
		ck_assert(serve(p, &s));
		n++;
	}
	return (double)n * NS_PER_S / (double)(clock_ns - began_ns);
}

static const double speeds[] = {3, 1.5, 0.5, 2.5, 3.8, 6, 0.8, 2};

/* Within three windows after each change of speed the factor must be right;
 * from then on the trainer must have the highest possible rate. */
static void follow_speeds(struct plant *p)
{
	struct refrain_config c = auto_config();
	uint64_t window;

	open_plant(p, &c);
	window = stats_of(p).window;
	for (unsigned i = 0; i < sizeof(speeds) / sizeof(*speeds); i++) {
		double want = speeds[i] < 1 ? 1 : speeds[i], rate, possible;

		want = want > 4 ? 4 : want;
		p->up_ns = speeds[i] * DOWN_NS;
		(void)run_fresh(p, 3 * window);
		ck_assert_double_ge_tol(
			stats_of(p).echo_factor, 0.85 * want, 1e-9);
		ck_assert_double_le_tol(
			stats_of(p).echo_factor, 1.15 * want, 1e-9);
		if (speeds[i] <= 1)
			ck_assert_double_eq(stats_of(p).echo_factor, 1);
		rate = run_fresh(p, window) * DOWN_NS / (double)NS_PER_S;
		possible = want / (speeds[i] > 1 ? speeds[i] : 1);
		possible /= 1 + (double)p->pull_ns / (double)DOWN_NS / want;
		if (p->ahead)
			ck_assert_double_ge(rate, 0.9 * possible);
	}
	refrain_echo_close(p->e);
}

START_TEST(test_follows_a_source_that_works_in_the_background)
{
	static const uint32_t aheads[] = {4, 16, 64, 250};
	static const uint64_t noises[] = {0, 15};

	for (int i = 0; i < 8; i++) {
		struct plant p = {.pull_ns = 100 * NS_PER_US,
			.ahead = aheads[i % 4],
			.noise = noises[i / 4]};

		follow_speeds(&p);
	}
}
END_TEST

START_TEST(test_follows_a_source_that_works_only_when_asked)
{
	static const uint64_t noises[] = {0, 15, 60};

	for (int i = 0; i < 3; i++) {
		struct plant p = {.noise = noises[i]};

		follow_speeds(&p);
	}
}
END_TEST

START_TEST(test_never_echoes_a_source_that_is_fast)
{
	for (uint32_t ahead = 0; ahead < 100; ahead += 33) {
		struct refrain_config c = auto_config();
		struct plant p = {.up_ns = 0.9 * DOWN_NS,
			.pull_ns = 200 * NS_PER_US,
			.ahead = ahead,
			.noise = 15};

		open_plant(&p, &c);
		(void)run_fresh(&p, 20 * stats_of(&p).window);
		ck_assert_double_eq(stats_of(&p).echo_factor, 1);
		ck_assert_uint_eq(stats_of(&p).echo_changes, 0);
		refrain_echo_close(p.e);
	}
}
END_TEST

/* At any time, the examples that were pulled and not served yet are at most
 * those of one probe. */
START_TEST(test_takes_no_more_ahead_than_a_probe_may)
{
	static const uint64_t windows[] = {0, 64, 320};

	for (int i = 0; i < 6; i++) {
		struct refrain_config c = auto_config();
		struct plant p = {
			.pull_ns = 100 * NS_PER_US, .ahead = i / 3 * 16};
		struct refrain_echo_stats now;
		struct refrain_serving s;
		uint64_t most;

		c.batch = 4;
		c.window = windows[i % 3];
		open_plant(&p, &c);
		most = stats_of(&p).window * 3 / 8;
		most = most < 64 ? 64 : most > 384 ? 384 : most;
		for (uint32_t n = 0; n < 40000; n++) {
			p.up_ns = speeds[n / 5000] * DOWN_NS;
			ck_assert(serve(&p, &s));
			now = stats_of(&p);
			ck_assert_uint_le(now.pulled - now.fresh, most);
		}
		refrain_echo_close(p.e);
	}
}
END_TEST

/* -- The log and states ---------------------------------------------------- */

/* Returns the speed after this number of servings: it changes within and
 * between epochs. */
static double speed_at(uint64_t served)
{
	return speeds[served / 9000 % 8] * DOWN_NS;
}

struct record {
	struct refrain_serving *all;
	uint64_t n;
};

#define EPOCHS 3
#define EPOCH_EXAMPLES 6000
#define RECORD_MAX (EPOCHS * EPOCH_EXAMPLES * 4)

static void record_epochs(struct plant *p, struct record *r, uint64_t from)
{
	struct refrain_serving s;

	for (uint64_t epoch = from; epoch < EPOCHS; epoch++) {
		if (epoch > from)
			ck_assert_int_eq(refrain_echo_begin(p->e, epoch), 0);
		while (p->up_ns = speed_at(r->n), serve(p, &s))
			r->all[r->n++] = s;
	}
}

static void expect_same(
	const struct record *a, uint64_t from, const struct record *b)
{
	ck_assert_uint_eq(a->n - from, b->n - from);
	for (uint64_t i = from; i < a->n; i++) {
		const struct refrain_serving *x = &a->all[i], *y = &b->all[i];

		ck_assert(x->example == y->example && x->seed == y->seed &&
			x->echo == y->echo && x->last == y->last &&
			x->epoch == y->epoch && x->serving == y->serving);
	}
}

static struct record new_record(void)
{
	return (struct record){
		calloc(RECORD_MAX, sizeof(struct refrain_serving)), 0};
}

START_TEST(test_the_log_repeats_the_stream_over_all_epochs)
{
	struct record first = new_record(), again = new_record();
	struct plant p = {.pull_ns = 100 * NS_PER_US,
		.ahead = 16,
		.examples = EPOCH_EXAMPLES};
	struct refrain_config c = auto_config();
	char log[4096];

	open_plant(&p, &c);
	record_epochs(&p, &first, 0);
	ck_assert_int_gt(refrain_echo_changes(p.e, log, sizeof(log)), 0);
	ck_assert_uint_gt(stats_of(&p).echo_changes, 3);
	refrain_echo_close(p.e);
	c.echo_log = log;
	p.ahead = 3; /* other times than in the run that made the log */
	open_plant(&p, &c);
	record_epochs(&p, &again, 0);
	expect_same(&first, 0, &again);
	refrain_echo_close(p.e);
	free(first.all);
	free(again.all);
}
END_TEST

/* Returns the lines of the log after the first `skip` lines. */
static const char *lines_after(const char *log, uint64_t skip)
{
	while (skip--)
		log = strchr(log, '\n') + 1;
	return log;
}

/* Save at some positions of a run that measures. A run that continues from such
 * a state with the whole log must serve the same. */
START_TEST(test_states_after_changes_restore_the_stream)
{
	struct record first = new_record(), again = new_record();
	struct plant p = {.pull_ns = 100 * NS_PER_US,
		.ahead = 16,
		.examples = EPOCH_EXAMPLES};
	struct refrain_config c = auto_config(), resumed;
	static uint8_t states[RECORD_MAX / 997 + 1][REFRAIN_STATE_MAX];
	int sizes[RECORD_MAX / 997 + 1];
	uint64_t n = 0, changes_most = 0;
	struct refrain_serving s;
	char log[4096];

	open_plant(&p, &c);
	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		if (epoch)
			ck_assert_int_eq(refrain_echo_begin(p.e, epoch), 0);
		do {
			if (first.n == n * 997) {
				sizes[n] = refrain_echo_save(
					p.e, states[n], REFRAIN_STATE_MAX);
				ck_assert_int_gt(sizes[n], 0);
				n++;
			}
			p.up_ns = speed_at(first.n);
		} while (serve(&p, &s) && (first.all[first.n++] = s, true));
	}
	ck_assert_int_gt(refrain_echo_changes(p.e, log, sizeof(log)), 0);
	refrain_echo_close(p.e);
	resumed = c;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t from = i * 997;
		struct plant q = p;

		resumed.echo_log = log;
		resumed.state = states[i];
		resumed.state_bytes = (size_t)sizes[i];
		open_plant(&q, &resumed);
		changes_most = stats_of(&q).echo_changes;
		again.n = from;
		record_epochs(&q, &again, first.all[from].epoch);
		expect_same(&first, from, &again);
		refrain_echo_close(q.e);
	}
	ck_assert_uint_gt(changes_most, 3);
	/* A run that measures continues, too, and logs only its own changes. */
	resumed.echo_log = NULL;
	open_plant(&p, &resumed);
	ck_assert_uint_eq(stats_of(&p).echo_changes, changes_most);
	ck_assert_int_eq(refrain_echo_changes(p.e, log, sizeof(log)), 0);
	again.n = (n - 1) * 997;
	record_epochs(&p, &again, first.all[again.n].epoch);
	ck_assert_str_eq(lines_after(log, 0), log);
	refrain_echo_close(p.e);
	free(first.all);
	free(again.all);
}
END_TEST

START_TEST(test_does_not_change_in_the_last_window_of_a_known_length)
{
	struct refrain_config c = auto_config();
	struct plant p = {.pull_ns = 100 * NS_PER_US, .ahead = 16};
	struct refrain_serving s;
	struct error err;
	uint64_t begins;
	char log[4096];

	for (uint64_t n = 1000; n < 6000; n += 500) {
		uint32_t served[6000] = {0};
		uint64_t last[6000] = {0};

		clock_ns = NS_PER_S;
		p.ready_at_ns = (double)clock_ns;
		p.examples = n;
		ck_assert_int_eq(stage_open(&p.e, &c, n, now, &err), 0);
		while (p.up_ns =
				speeds[stats_of(&p).served / 700 % 8] * DOWN_NS,
			serve(&p, &s)) {
			uint64_t step = s.serving / BATCH + 1;

			ck_assert_uint_eq(served[s.example]++, s.echo);
			ck_assert_uint_ne(last[s.example], step);
			last[s.example] = step;
		}
		begins = schedule_change_begins(&p.e->schedule);
		ck_assert_uint_lt(begins + 1024, n + BATCH * 2);
		ck_assert_uint_eq(stats_of(&p).duplicates, 0);
		ck_assert_int_ge(
			refrain_echo_changes(p.e, log, sizeof(log)), 0);
		refrain_echo_close(p.e);
	}
}
END_TEST

START_TEST(test_a_log_of_another_configuration_is_refused)
{
	struct refrain_serving s = {.size = sizeof(s)};
	struct refrain_config c = auto_config();
	struct plant p = {.up_ns = DOWN_NS};
	int rc;

	c.echo_log = "10 2/1\n11 3/1\n";
	open_plant(&p, &c);
	while ((rc = refrain_echo_next(p.e, &s)) > 0) {
		ck_assert_uint_lt(s.serving, 12 * BATCH);
		ck_assert_int_eq(rc == REFRAIN_ECHO_PULL
				? refrain_echo_pulled(p.e)
				: refrain_echo_served(p.e),
			0);
	}
	ck_assert_int_eq(rc, -ESTALE);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "line 2 belongs"));
	ck_assert_int_eq(refrain_echo_next(p.e, &s), -ESTALE);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "line 2 belongs"));
	refrain_echo_close(p.e);
}
END_TEST

START_TEST(test_ranks_must_not_measure_apart)
{
	struct refrain_config c = auto_config();
	struct refrain_echo *e;

	c.world = 2;
	ck_assert_int_eq(refrain_echo_open(&e, &c, 0), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "echo_log"));
	c.echo_log = "";
	ck_assert_int_eq(refrain_echo_open(&e, &c, 0), 0);
	refrain_echo_close(e);
	c.echo_log = "1 2/1\nno\n";
	ck_assert_int_eq(refrain_echo_open(&e, &c, 0), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "line 2"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("echo_stage_auto");
	TCase *t = case_of(s, "auto");

	tcase_add_test(t, test_follows_a_source_that_works_in_the_background);
	tcase_add_test(t, test_follows_a_source_that_works_only_when_asked);
	tcase_add_test(t, test_never_echoes_a_source_that_is_fast);
	tcase_add_test(t, test_takes_no_more_ahead_than_a_probe_may);
	tcase_add_test(t, test_the_log_repeats_the_stream_over_all_epochs);
	tcase_add_test(t, test_states_after_changes_restore_the_stream);
	tcase_add_test(
		t, test_does_not_change_in_the_last_window_of_a_known_length);
	tcase_add_test(t, test_a_log_of_another_configuration_is_refused);
	tcase_add_test(t, test_ranks_must_not_measure_apart);
	return run_suite(s);
}

/* SPDX-License-Identifier: MIT */
/* Tests of the echo stage by its public calls, over sources that only count.
 * The stage must give the stream of a schedule that knows the end, even if it
 * is saved at any position, and after failures. REFRAIN_TEST_RUNS sets the
 * number of random runs. */
#include <errno.h>
#include <refrain/echo.h>
#include <string.h>

#include "common/base/hash.h"
#include "schedule_fixture.h"
#include "suite.h"

/* The servings of an epoch, in order. */
struct servings {
	struct refrain_serving *all;
	uint64_t n, room;
};

static void servings_add(struct servings *v, const struct refrain_serving *s)
{
	if (v->n == v->room) {
		v->room = 2 * v->room + 64;
		v->all = realloc(v->all, v->room * sizeof(*v->all));
		ck_assert(v->all != NULL);
	}
	v->all[v->n++] = *s;
}

static void servings_free(struct servings *v)
{
	free(v->all);
	*v = (struct servings){0};
}

/* A user of a stage, with the examples that it keeps. */
struct user {
	struct refrain_echo *e;
	uint64_t examples; /* number of examples of the user's source */
	uint64_t kept, kept_most;
	uint64_t serving, epoch;
	bool keeps[4096];
};

static struct refrain_config a_config(uint32_t batch, double echo)
{
	struct refrain_config c;

	refrain_config_init(&c);
	c.batch = batch;
	c.echo = echo;
	c.seed = 7;
	return c;
}

static void user_open(
	struct user *u, const struct refrain_config *c, uint64_t examples)
{
	*u = (struct user){.examples = examples};
	ck_assert_int_eq(refrain_echo_open(&u->e, c, 0), 0);
}

static void keep(struct user *u, uint64_t example, bool keeps)
{
	ck_assert(u->keeps[example] != keeps);
	u->keeps[example] = keeps;
	u->kept += keeps ? 1 : (uint64_t)-1;
	if (u->kept > u->kept_most)
		u->kept_most = u->kept;
}

/* Get the next serving. Returns 1, or 0 at the end. */
static int user_next(struct user *u, struct refrain_serving *s)
{
	int rc;

	*s = (struct refrain_serving){.size = sizeof(*s)};
	while ((rc = refrain_echo_next(u->e, s)) == REFRAIN_ECHO_PULL) {
		if (s->example == u->examples) {
			ck_assert_int_eq(refrain_echo_ended(u->e), 0);
			continue;
		}
		if (!s->last)
			keep(u, s->example, true);
		ck_assert_int_eq(refrain_echo_pulled(u->e), 0);
	}
	if (rc == REFRAIN_ECHO_END)
		return 0;
	ck_assert_int_eq(rc, REFRAIN_ECHO_SERVE);
	ck_assert(u->keeps[s->example]);
	ck_assert_int_eq(refrain_echo_served(u->e), 0);
	if (s->last)
		keep(u, s->example, false);
	return 1;
}

static void user_run(struct user *u, struct servings *v)
{
	struct refrain_serving s;

	while (user_next(u, &s))
		servings_add(v, &s);
}

static bool same_serving(
	const struct refrain_serving *a, const struct refrain_serving *b)
{
	return a->example == b->example && a->seed == b->seed &&
		a->echo == b->echo && a->last == b->last &&
		a->serving == b->serving && a->epoch == b->epoch;
}

/* -- Random runs ----------------------------------------------------------- */

static const struct schedule_echo factors[] = {
	{1, 1}, {3, 2}, {2, 1}, {5, 2}, {4, 1}, {7, 3}};

static void draw(struct dice *d, uint64_t seed, struct refrain_config *c,
	struct schedule_echo *echo, uint64_t *examples)
{
	*d = (struct dice){seed * 7919 + 3};
	(void)roll(d, 2);
	*echo = factors[roll(d, 6)];
	*c = a_config(1 + (uint32_t)roll(d, 9), (double)echo->p / echo->q);
	c->seed = seed;
	c->world = 1 + (uint32_t)roll(d, 3);
	c->rank = (uint32_t)roll(d, c->world);
	c->min_lag = 1 + (uint32_t)(roll(d, 4) == 0);
	c->window = (uint32_t)(schedule_min_window(c->batch, *echo, c->min_lag,
				       SCHEDULE_BEFORE) +
		roll(d, 40));
	*examples = roll(d, 3 * c->window);
}

/* Compute the servings of a schedule that knows the end. */
static void expect_known(const struct refrain_config *c,
	struct schedule_echo echo, uint64_t examples, uint64_t epoch,
	const struct servings *got)
{
	struct schedule_config known = {.examples = examples * c->world,
		.epochs = 1,
		.seed = hash64(&epoch, sizeof(epoch), c->seed),
		.batch = c->batch,
		.rank = c->rank,
		.world = c->world,
		.lag = c->min_lag,
		.window = c->window,
		.echo = echo,
		.order = SCHEDULE_IN_ORDER};
	struct stream want = {0};
	struct schedule s;

	if (!examples) {
		ck_assert_uint_eq(got->n, 0);
		return;
	}
	ck_assert_int_eq(schedule_init(&s, &known, NULL), 0);
	stream_run(&want, &s, 0);
	ck_assert_uint_eq(want.n, got->n);
	for (uint64_t i = 0; i < want.n; i++) {
		ck_assert_uint_eq(want.slots[i].fresh, got->all[i].example);
		ck_assert_uint_eq(want.slots[i].augment_seed, got->all[i].seed);
		ck_assert_uint_eq(want.slots[i].echo, got->all[i].echo);
		ck_assert_uint_eq(want.slots[i].last, got->all[i].last);
		ck_assert_uint_eq(got->all[i].serving, i);
		ck_assert_uint_eq(got->all[i].epoch, epoch);
	}
	stream_free(&want);
}

static uint64_t runs(void)
{
	const char *text = getenv("REFRAIN_TEST_RUNS");

	return text ? strtoull(text, NULL, 10) : 600;
}

START_TEST(test_serves_what_a_schedule_does_that_knew_the_end)
{
	for (uint64_t i = 0; i < runs(); i++) {
		struct schedule_echo echo;
		struct refrain_config c;
		uint64_t examples;
		struct user u;
		struct dice d;

		draw(&d, i, &c, &echo, &examples);
		user_open(&u, &c, examples);
		for (uint64_t epoch = 0; epoch < 3; epoch += 2) {
			struct servings got = {0};

			if (epoch)
				ck_assert_int_eq(
					refrain_echo_begin(u.e, epoch), 0);
			user_run(&u, &got);
			expect_known(&c, echo, examples, epoch, &got);
			ck_assert_uint_eq(
				got.n, refrain_echo_servings(u.e, examples));
			ck_assert_uint_eq(u.kept, 0);
			ck_assert_uint_le(u.kept_most, c.window);
			servings_free(&got);
		}
		refrain_echo_close(u.e);
	}
}
END_TEST

/* Continue from a state, with a source that begins at the example `from` or
 * before it. */
static void resume(const struct refrain_config *config, const uint8_t *state,
	int size, uint64_t examples, struct dice *d, struct servings *rest)
{
	struct refrain_config c = *config;
	struct user u;
	uint64_t needs;

	c.state = state;
	c.state_bytes = (size_t)size;
	user_open(&u, &c, examples);
	needs = refrain_echo_needs(u.e);
	ck_assert_int_eq(refrain_echo_from(u.e, needs + 1), -EINVAL);
	if (roll(d, 3))
		ck_assert_int_eq(
			refrain_echo_from(u.e, needs - roll(d, needs + 1)), 0);
	user_run(&u, rest);
	ck_assert_uint_eq(u.kept, 0);
	ck_assert_uint_le(u.kept_most, c.window);
	refrain_echo_close(u.e);
}

START_TEST(test_every_position_restores_the_same_stream)
{
	uint64_t positions = 0;

	for (uint64_t i = 0; i < runs() / 10; i++) {
		struct servings want = {0}, rest = {0};
		uint8_t state[REFRAIN_STATE_MAX];
		struct schedule_echo echo;
		struct refrain_serving s;
		struct refrain_config c;
		uint64_t examples, n = 0;
		struct user u;
		struct dice d;

		draw(&d, i, &c, &echo, &examples);
		examples %= 80;
		user_open(&u, &c, examples);
		ck_assert_int_eq(refrain_echo_begin(u.e, i), 0);
		user_run(&u, &want);
		ck_assert_int_eq(refrain_echo_begin(u.e, i), 0);
		do {
			int size = refrain_echo_save(u.e, state, sizeof(state));

			ck_assert_int_gt(size, 0);
			resume(&c, state, size, examples, &d, &rest);
			ck_assert_uint_eq(rest.n, want.n - n);
			for (uint64_t k = 0; k < rest.n; k++)
				ck_assert(same_serving(
					&rest.all[k], &want.all[n + k]));
			rest.n = 0;
			positions++;
			n++;
		} while (user_next(&u, &s));
		refrain_echo_close(u.e);
		servings_free(&want);
		servings_free(&rest);
	}
	ck_assert_uint_gt(positions, runs() / 10);
}
END_TEST

/* -- Failures on the way --------------------------------------------------- */

START_TEST(test_says_the_same_again_until_it_was_done)
{
	struct refrain_config c = a_config(4, 2);
	struct servings want = {0}, got = {0};
	struct refrain_serving s, again;
	struct user u;
	struct dice d = {1};

	user_open(&u, &c, 50);
	user_run(&u, &want);
	refrain_echo_close(u.e);
	user_open(&u, &c, 50);
	while (true) {
		int rc;

		s = again = (struct refrain_serving){.size = sizeof(s)};
		rc = refrain_echo_next(u.e, &s);
		for (uint64_t i = roll(&d, 3); i > 0; i--) {
			ck_assert_int_eq(refrain_echo_next(u.e, &again), rc);
			ck_assert(rc == REFRAIN_ECHO_END ||
				same_serving(&s, &again));
		}
		if (rc == REFRAIN_ECHO_END)
			break;
		if (rc == REFRAIN_ECHO_SERVE) {
			ck_assert_int_eq(refrain_echo_pulled(u.e), -EINVAL);
			ck_assert_int_eq(refrain_echo_ended(u.e), -EINVAL);
			ck_assert_int_eq(refrain_echo_served(u.e), 0);
			servings_add(&got, &s);
			continue;
		}
		ck_assert_int_eq(refrain_echo_served(u.e), -EINVAL);
		ck_assert_int_eq(s.example < 50 ? refrain_echo_pulled(u.e)
						: refrain_echo_ended(u.e),
			0);
	}
	ck_assert_uint_eq(want.n, got.n);
	for (uint64_t i = 0; i < got.n; i++)
		ck_assert(same_serving(&want.all[i], &got.all[i]));
	refrain_echo_close(u.e);
	servings_free(&want);
	servings_free(&got);
}
END_TEST

START_TEST(test_stays_at_the_end_until_another_epoch_begins)
{
	struct refrain_config c = a_config(4, 2);
	uint8_t state[REFRAIN_STATE_MAX];
	struct servings v = {0};
	struct refrain_serving s;
	struct user u;
	int size;

	user_open(&u, &c, 9);
	user_run(&u, &v);
	ck_assert_uint_eq(v.n, 18);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(user_next(&u, &s), 0);
		ck_assert_int_eq(refrain_echo_served(u.e), -EINVAL);
		ck_assert_int_eq(refrain_echo_pulled(u.e), -EINVAL);
		ck_assert_int_eq(refrain_echo_ended(u.e), -EINVAL);
	}
	size = refrain_echo_save(u.e, state, sizeof(state));
	ck_assert_int_gt(size, 0);
	refrain_echo_close(u.e);
	c.state = state;
	c.state_bytes = (size_t)size;
	user_open(&u, &c, 9);
	ck_assert_int_eq(user_next(&u, &s), 0);
	ck_assert_int_eq(refrain_echo_begin(u.e, 1), 0);
	v.n = 0;
	user_run(&u, &v);
	ck_assert_uint_eq(v.n, 18);
	ck_assert_uint_eq(v.all[0].epoch, 1);
	refrain_echo_close(u.e);
	servings_free(&v);
}
END_TEST

START_TEST(test_a_source_that_has_become_shorter_is_an_error)
{
	struct refrain_config c = a_config(4, 2);
	uint8_t state[REFRAIN_STATE_MAX];
	struct refrain_serving s = {.size = sizeof(s)};
	struct user u;

	user_open(&u, &c, 50);
	for (int i = 0; i < 30; i++)
		ck_assert_int_eq(user_next(&u, &s), 1);
	c.state_bytes = (size_t)refrain_echo_save(u.e, state, sizeof(state));
	c.state = state;
	refrain_echo_close(u.e);
	user_open(&u, &c, 50);
	ck_assert_int_eq(refrain_echo_next(u.e, &s), REFRAIN_ECHO_PULL);
	ck_assert_int_eq(refrain_echo_ended(u.e), -ESTALE);
	ck_assert_ptr_nonnull(
		strstr(refrain_message(NULL), "it had more when"));
	/* The state of the stage has not changed. */
	ck_assert_int_eq(refrain_echo_next(u.e, &s), REFRAIN_ECHO_PULL);
	refrain_echo_close(u.e);
}
END_TEST

START_TEST(test_ranks_and_epochs_have_seeds_of_their_own)
{
	uint64_t seeds[4 * 2 * 40], n = 0;

	for (uint32_t rank = 0; rank < 4; rank++) {
		struct refrain_config c = a_config(4, 2);
		struct refrain_serving s;
		struct user u;

		c.rank = rank;
		c.world = 4;
		user_open(&u, &c, 20);
		for (uint64_t epoch = 0; epoch < 2; epoch++) {
			ck_assert_int_eq(refrain_echo_begin(u.e, epoch), 0);
			while (user_next(&u, &s))
				seeds[n++] = s.seed;
		}
		refrain_echo_close(u.e);
	}
	ck_assert_uint_eq(n, sizeof(seeds) / sizeof(*seeds));
	for (uint64_t i = 0; i < n; i++)
		for (uint64_t k = 0; k < i; k++)
			ck_assert_uint_ne(seeds[i], seeds[k]);
}
END_TEST

START_TEST(test_a_small_window_is_refused_or_its_duplicates_are_counted)
{
	struct refrain_config c = a_config(8, 4);
	struct refrain_echo_stats stats = {.size = sizeof(stats)};
	uint64_t duplicates = 0, step[64] = {0};
	struct refrain_serving s;
	struct user u;

	c.window = 20;
	ck_assert_int_eq(refrain_echo_open(&u.e, &c, 0), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "need 56"));
	c.flags = REFRAIN_FLAG_ALLOW_DUPLICATES;
	user_open(&u, &c, 64);
	while (user_next(&u, &s)) {
		duplicates += s.echo && step[s.example] == s.serving / 8 + 1;
		step[s.example] = s.serving / 8 + 1;
	}
	ck_assert_int_eq(refrain_echo_stats_get(u.e, &stats), 0);
	ck_assert_uint_gt(duplicates, 0);
	ck_assert_uint_eq(stats.duplicates, duplicates);
	ck_assert_uint_eq(stats.fresh, 64);
	ck_assert_uint_eq(stats.served, 256);
	ck_assert_uint_eq(stats.pulled, 64);
	ck_assert_uint_eq(stats.window, 20);
	refrain_echo_close(u.e);
}
END_TEST

/* -- States that do not fit ------------------------------------------------ */

static int open_with(const struct refrain_config *c)
{
	struct refrain_echo *e;
	int rc = refrain_echo_open(&e, c, 0);

	refrain_echo_close(e);
	return rc;
}

START_TEST(test_a_state_that_does_not_fit_is_refused_by_name)
{
	struct refrain_config good = a_config(8, 2), c;
	uint8_t state[REFRAIN_STATE_MAX], bad[REFRAIN_STATE_MAX];
	struct refrain_serving s;
	struct user u;
	int size;

	good.world = 2;
	user_open(&u, &good, 100);
	for (int i = 0; i < 77; i++)
		ck_assert_int_eq(user_next(&u, &s), 1);
	size = refrain_echo_save(u.e, state, sizeof(state));
	ck_assert_int_gt(size, 0);
	ck_assert_int_eq(
		refrain_echo_save(u.e, state, (size_t)size - 1), -ENOSPC);
	refrain_echo_close(u.e);
	good.state = state;
	good.state_bytes = (size_t)size;
	ck_assert_int_eq(open_with(&good), 0);
#define NAMED(member, value, name)                                             \
	do {                                                                   \
		c = good;                                                      \
		c.member = (value);                                            \
		ck_assert_int_eq(open_with(&c), -ESTALE);                      \
		ck_assert_msg(strstr(refrain_message(NULL), name), "%s",       \
			refrain_message(NULL));                                \
	} while (0)
	NAMED(seed, 8, "seed differs");
	NAMED(rank, 1, "rank differs");
	NAMED(world, 3, "world 2, not 3");
	NAMED(echo, 3, "echo differs");
	NAMED(batch, 16, "batch 8, not 16");
	NAMED(window, 2048, "window 1024, not 2048");
	NAMED(min_lag, 2, "min_lag 1, not 2");
#undef NAMED
	for (size_t cut = 1; cut < good.state_bytes; cut++) {
		c = good;
		c.state_bytes = cut;
		ck_assert_int_eq(open_with(&c), -EBADMSG);
	}
	for (size_t i = 0; i < good.state_bytes; i++) {
		c = good;
		memcpy(bad, state, good.state_bytes);
		bad[i] ^= 1;
		c.state = bad;
		ck_assert_int_eq(open_with(&c), -EBADMSG);
	}
}
END_TEST

START_TEST(test_null_and_unset_are_refused)
{
	struct refrain_serving s = {.size = sizeof(s)};
	struct refrain_config c = a_config(0, 2);
	struct refrain_echo_stats stats = {.size = 4};
	struct refrain_echo *e;
	char buf[8];

	ck_assert_int_eq(refrain_echo_open(NULL, &c, 0), -EINVAL);
	ck_assert_int_eq(refrain_echo_open(&e, NULL, 0), -EINVAL);
	ck_assert_int_eq(refrain_echo_open(&e, &c, 0), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refrain_message(NULL), "batch"));
	c.size = 0;
	ck_assert_int_eq(refrain_echo_open(&e, &c, 0), -EINVAL);
	ck_assert_int_eq(refrain_echo_begin(NULL, 0), -EINVAL);
	ck_assert_uint_eq(refrain_echo_needs(NULL), 0);
	ck_assert_int_eq(refrain_echo_from(NULL, 0), -EINVAL);
	ck_assert_int_eq(refrain_echo_next(NULL, &s), -EINVAL);
	ck_assert_int_eq(refrain_echo_pulled(NULL), -EINVAL);
	ck_assert_int_eq(refrain_echo_ended(NULL), -EINVAL);
	ck_assert_int_eq(refrain_echo_served(NULL), -EINVAL);
	ck_assert_uint_eq(refrain_echo_servings(NULL, 1), 0);
	ck_assert_int_eq(refrain_echo_save(NULL, buf, 8), -EINVAL);
	ck_assert_int_eq(refrain_echo_changes(NULL, buf, 8), -EINVAL);
	ck_assert_int_eq(refrain_echo_stats_get(NULL, &stats), -EINVAL);
	refrain_echo_close(NULL);
	c = a_config(4, 2);
	ck_assert_int_eq(refrain_echo_open(&e, &c, 0), 0);
	ck_assert_int_eq(refrain_echo_next(e, NULL), -EINVAL);
	ck_assert_int_eq(refrain_echo_save(e, NULL, 8), -EINVAL);
	ck_assert_int_eq(refrain_echo_changes(e, NULL, 8), -EINVAL);
	ck_assert_int_eq(refrain_echo_changes(e, buf, 8), 0);
	ck_assert_int_eq(refrain_echo_stats_get(e, NULL), -EINVAL);
	ck_assert_int_eq(refrain_echo_stats_get(e, &stats), -EINVAL);
	refrain_echo_close(e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("echo_stage");
	TCase *t = case_of(s, "stage");

	tcase_add_test(t, test_serves_what_a_schedule_does_that_knew_the_end);
	tcase_add_test(t, test_every_position_restores_the_same_stream);
	tcase_add_test(t, test_says_the_same_again_until_it_was_done);
	tcase_add_test(t, test_stays_at_the_end_until_another_epoch_begins);
	tcase_add_test(t, test_a_source_that_has_become_shorter_is_an_error);
	tcase_add_test(t, test_ranks_and_epochs_have_seeds_of_their_own);
	tcase_add_test(t,
		test_a_small_window_is_refused_or_its_duplicates_are_counted);
	tcase_add_test(t, test_a_state_that_does_not_fit_is_refused_by_name);
	tcase_add_test(t, test_null_and_unset_are_refused);
	return run_suite(s);
}

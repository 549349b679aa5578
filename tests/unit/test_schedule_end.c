/* SPDX-License-Identifier: MIT */
/* Tests of the schedule of a run whose end is not known. Its slots must equal
 * those of a run that knew its end, and a saved position must restore it.
 * REFRAIN_TEST_RUNS sets the number of random runs. */
#include <errno.h>
#include <string.h>

#include "schedule_fixture.h"
#include "suite.h"

#define CHANGES_MAX 12 /* more changes than a schedule keeps */

/* A random run: its examples, and when its factor changes. */
struct run {
	struct dice dice;
	struct schedule_config c;
	uint64_t fresh; /* number of examples of each rank */
	uint64_t steps[CHANGES_MAX];
	struct schedule_echo echoes[CHANGES_MAX];
	uint32_t changes;
};

static struct schedule_echo draw_echo(struct dice *d)
{
	static const struct schedule_echo usual[] = {
		{1, 1}, {3, 2}, {2, 1}, {5, 2}, {4, 1}, {11, 10}, {7, 3}};

	return usual[roll(d, 7)];
}

static void draw_run(struct run *r, uint64_t seed, bool changes)
{
	struct schedule_config *c = &r->c;
	uint64_t spread;

	*r = (struct run){.dice = {seed * 7919 + 17}};
	(void)roll(&r->dice, 2);
	*c = (struct schedule_config){.epochs = 1,
		.seed = seed,
		.order = SCHEDULE_IN_ORDER,
		.open_end = true,
		.batch = 1 + (uint32_t)roll(&r->dice, 9),
		.world = 1 + (uint32_t)roll(&r->dice, 3),
		.lag = 1 + (uint32_t)(roll(&r->dice, 4) == 0),
		.echo = draw_echo(&r->dice)};
	c->rank = (uint32_t)roll(&r->dice, c->world);
	c->echo_max = changes ? (struct schedule_echo){4, 1} : c->echo;
	c->window = schedule_min_window(
			    c->batch, c->echo_max, c->lag, SCHEDULE_BEFORE) +
		roll(&r->dice, 40);
	spread = c->window - c->batch;
	r->fresh = roll(&r->dice, (changes ? 12 : 3) * spread + 2);
	while (changes && r->changes < CHANGES_MAX) {
		r->steps[r->changes] = roll(&r->dice, 40) +
			(r->changes ? r->steps[r->changes - 1] : 0);
		r->echoes[r->changes++] = draw_echo(&r->dice);
	}
}

/* Make the changes whose step has come. They come at the same steps in both
 * schedules. */
static void change(struct schedule *s, const struct run *r,
	const struct schedule_cursor *at, uint32_t *next)
{
	for (; *next < r->changes && r->steps[*next] <= at->step; ++*next)
		(void)schedule_change(s, at->step + 1, r->echoes[*next]);
}

/* Get the next slot like a stage whose source has given `have` examples. */
static int pull(struct schedule *s, struct schedule_cursor *at,
	struct schedule_slot *slot, uint64_t *have, uint64_t fresh)
{
	int rc = schedule_peek(s, at, slot);

	if (rc == 0 || slot->fresh < *have)
		return rc;
	ck_assert_uint_eq(slot->fresh, *have);
	if (*have < fresh)
		return ++*have, 1;
	ck_assert_int_eq(schedule_end(s, fresh), 0);
	ck_assert(schedule_has_end(s));
	return schedule_peek(s, at, slot);
}

static void add_slot(struct stream *st, const struct schedule_slot *slot)
{
	stream_reserve(st, 1);
	st->slots[st->n++] = *slot;
}

/* Compare all slots from a position to the end. */
static void run_open(struct stream *st, struct schedule *s, const struct run *r,
	struct schedule_cursor at, uint64_t have, uint32_t changed)
{
	struct schedule_slot slot;

	change(s, r, &at, &changed);
	while (pull(s, &at, &slot, &have, r->fresh)) {
		add_slot(st, &slot);
		schedule_advance(s, &at);
		change(s, r, &at, &changed);
	}
}

static void begin_run(
	struct schedule *s, const struct run *r, struct schedule_cursor *at)
{
	ck_assert_int_eq(schedule_init(s, &r->c, NULL), 0);
	ck_assert(!schedule_has_end(s));
	ck_assert_int_eq(schedule_seek(s, at, 0), 0);
}

/* Make the run with a schedule that knows its end. With `closed`, the schedule
 * is set up as a loader does it. */
static void run_known(struct stream *st, const struct run *r, bool closed)
{
	struct schedule_config c = r->c;
	struct schedule_cursor at;
	struct schedule_slot slot;
	uint32_t changed = 0;
	struct schedule s;

	c.examples = r->fresh * c.world;
	c.open_end = !closed;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	ck_assert_int_eq(schedule_seek(&s, &at, 0), 0);
	change(&s, r, &at, &changed);
	while (schedule_peek(&s, &at, &slot)) {
		add_slot(st, &slot);
		schedule_advance(&s, &at);
		change(&s, r, &at, &changed);
	}
}

static void expect_same(
	const struct stream *a, uint64_t from, const struct stream *b)
{
	ck_assert_uint_eq(a->n - from, b->n);
	for (uint64_t i = 0; i < b->n; i++)
		ck_assert(same_slot(&a->slots[from + i], &b->slots[i]));
}

/* Each example must be served as often as its factor says, in order. */
static void expect_counts(const struct stream *st, uint64_t fresh)
{
	uint32_t *served = calloc(fresh + 1, sizeof(*served));

	ck_assert(served != NULL);
	for (uint64_t i = 0; i < st->n; i++)
		ck_assert_uint_eq(
			st->slots[i].echo, served[st->slots[i].fresh]++);
	for (uint64_t i = 0; i < st->n; i++)
		ck_assert_uint_eq(
			st->slots[i].servings, served[st->slots[i].fresh]);
	for (uint64_t f = 0; f < fresh; f++)
		ck_assert_uint_gt(served[f], 0);
	free(served);
}

static uint64_t runs(void)
{
	const char *text = getenv("REFRAIN_TEST_RUNS");

	return text ? strtoull(text, NULL, 10) : 1000;
}

START_TEST(test_a_run_without_a_known_end_is_one_that_knew_it)
{
	for (uint64_t i = 0; i < runs(); i++) {
		struct stream open = {0}, known = {0}, batches = {0};
		struct schedule_config c;
		struct schedule_cursor at;
		struct schedule s;
		struct run r;

		draw_run(&r, i, false);
		begin_run(&s, &r, &at);
		run_open(&open, &s, &r, at, 0, 0);
		ck_assert_int_eq(schedule_end(&s, r.fresh), -EINVAL);
		expect_counts(&open, r.fresh);
		if (r.fresh) {
			run_known(&known, &r, true);
			expect_same(&open, 0, &known);
			c = r.c;
			c.examples = r.fresh * c.world;
			c.open_end = false;
			ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
			stream_run(&batches, &s, 0);
			expect_same(&open, 0, &batches);
		}
		ck_assert_uint_eq(open.n, r.fresh * r.c.echo.p / r.c.echo.q);
		stream_free(&open);
		stream_free(&known);
		stream_free(&batches);
	}
}
END_TEST

START_TEST(test_so_is_one_whose_factor_changes)
{
	uint64_t changed = 0;

	for (uint64_t i = 0; i < runs(); i++) {
		struct stream open = {0}, known = {0};
		struct schedule_cursor at;
		struct schedule s;
		struct run r;

		draw_run(&r, i, true);
		begin_run(&s, &r, &at);
		run_open(&open, &s, &r, at, 0, 0);
		changed += s.segments - 1;
		expect_counts(&open, r.fresh);
		if (r.fresh) {
			run_known(&known, &r, false);
			expect_same(&open, 0, &known);
		}
		stream_free(&open);
		stream_free(&known);
	}
	ck_assert(runs() < 100 || changed > runs() / 4);
}
END_TEST

/* Save before each slot, because a user may stop in the middle of a batch, and
 * continue from that position. */
static void resume_everywhere(const struct run *r, const struct stream *want)
{
	uint8_t state[SCHEDULE_STATE_BYTES];
	struct schedule_cursor at, again_at;
	struct schedule_restored restored;
	struct schedule s, again;
	struct schedule_slot slot;
	uint64_t n = 0, have = 0;
	uint32_t changed = 0;

	begin_run(&s, r, &at);
	change(&s, r, &at, &changed);
	do {
		uint64_t step = n / r->c.batch, skip = n % r->c.batch;
		size_t size = schedule_save(&s, step, state);
		struct stream rest = {0};

		ck_assert_uint_gt(size, 0);
		ck_assert_int_eq(schedule_restore(&again, &r->c, state, size,
					 &restored, NULL),
			0);
		ck_assert_uint_eq(restored.step, step);
		ck_assert_int_eq(schedule_seek(&again, &again_at, step), 0);
		for (uint64_t i = 0; i < skip; i++) {
			ck_assert_int_eq(
				schedule_peek(&again, &again_at, &slot), 1);
			schedule_advance(&again, &again_at);
		}
		run_open(&rest, &again, r, again_at, have, changed);
		expect_same(want, n, &rest);
		stream_free(&rest);
		if (!pull(&s, &at, &slot, &have, r->fresh))
			break;
		schedule_advance(&s, &at);
		change(&s, r, &at, &changed);
		n++;
	} while (true);
	ck_assert_uint_eq(n, want->n);
}

START_TEST(test_every_position_restores_the_rest_of_the_stream)
{
	uint64_t changed = 0;

	for (uint64_t i = 0; i < runs() / 8; i++) {
		struct stream want = {0};
		struct schedule_cursor at;
		struct schedule s;
		struct run r;

		draw_run(&r, i, i % 2);
		r.fresh %= 150;
		begin_run(&s, &r, &at);
		run_open(&want, &s, &r, at, 0, 0);
		changed += s.segments - 1;
		resume_everywhere(&r, &want);
		stream_free(&want);
	}
	ck_assert(runs() < 100 || changed > 10);
}
END_TEST

START_TEST(test_an_example_is_owed_until_its_last_serving)
{
	for (uint64_t i = 0; i < runs() / 20; i++) {
		struct stream st = {0};
		struct schedule_cursor at;
		struct schedule s;
		struct run r;

		draw_run(&r, i, i % 2);
		r.fresh %= 100;
		begin_run(&s, &r, &at);
		run_open(&st, &s, &r, at, 0, 0);
		ck_assert_int_eq(schedule_seek(&s, &at, 0), 0);
		for (uint64_t n = 0; n <= st.n; n++) {
			struct schedule_slot slot;

			(void)schedule_peek(&s, &at, &slot);
			for (uint64_t f = 0; f < r.fresh; f++) {
				bool owed = false;

				for (uint64_t k = n; k < st.n && !owed; k++)
					owed = st.slots[k].fresh == f;
				ck_assert(owed == schedule_is_owed(&s, &at, f));
			}
			schedule_advance(&s, &at);
		}
		stream_free(&st);
	}
}
END_TEST

START_TEST(test_an_open_end_is_refused_where_it_has_no_meaning)
{
	struct schedule_config c = {.epochs = 1,
		.batch = 4,
		.order = SCHEDULE_IN_ORDER,
		.open_end = true};
	uint8_t state[SCHEDULE_STATE_BYTES];
	struct schedule_restored restored;
	struct schedule s;
	struct error err;
	size_t size;

	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	size = schedule_save(&s, 0, state);
	c.world = 2;
	ck_assert_int_eq(schedule_restore(&s, &c, state, size, &restored, &err),
		-EINVAL);
	ck_assert_msg(strstr(err.msg, "world 1, not 2"), "%s", err.msg);
	c.world = 1;
	c.open_end = false;
	c.examples = 10;
	ck_assert_int_eq(schedule_restore(&s, &c, state, size, &restored, &err),
		-EINVAL);
	ck_assert_int_eq(schedule_init(&s, &c, NULL), 0);
	ck_assert_int_eq(schedule_end(&s, 10), -EINVAL);
	c.open_end = true;
	c.epochs = 2;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), -EINVAL);
	c.epochs = 1;
	c.order = SCHEDULE_SHUFFLE;
	ck_assert_int_eq(schedule_init(&s, &c, NULL), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("schedule_end");
	TCase *t = case_of(s, "end");

	tcase_add_test(t, test_a_run_without_a_known_end_is_one_that_knew_it);
	tcase_add_test(t, test_so_is_one_whose_factor_changes);
	tcase_add_test(t, test_every_position_restores_the_rest_of_the_stream);
	tcase_add_test(t, test_an_example_is_owed_until_its_last_serving);
	tcase_add_test(t, test_an_open_end_is_refused_where_it_has_no_meaning);
	return run_suite(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * The schedule's configuration: echo factors as text, windows, the shares of
 * the ranks, and checks. Pure functions, any thread.
 */
#include "common/schedule/lane_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/base/real.h"

#define ECHO_Q_MAX 64
/* Maximum number of digits. A printed double has fewer, so every printed factor
 * can be read. */
#define DIGITS_MAX 20

int echo_reduce(struct schedule_echo *echo)
{
	uint32_t a = echo->p, b = echo->q;

	if (!b || a < b)
		return -EINVAL;
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	echo->p /= a;
	echo->q /= a;
	if (echo->q > SCHEDULE_DENOMINATOR_MAX ||
		echo->p > (uint64_t)SCHEDULE_ECHO_MAX * echo->q)
		return -EINVAL;
	return 0;
}

bool echo_above(struct schedule_echo a, struct schedule_echo b)
{
	return (uint64_t)a.p * b.q > (uint64_t)b.p * a.q;
}

/* -- Echo factors as text -- */

struct schedule_echo schedule_echo_nearest(double echo)
{
	struct schedule_echo best = {1, 1};
	double best_off = INFINITY;

	for (uint32_t q = 1; q <= ECHO_Q_MAX; q++) {
		uint32_t p = (uint32_t)lround(echo * q);
		double off = fabs((double)p / q - echo);

		if (off < best_off - 1e-12) {
			best = (struct schedule_echo){p, q};
			best_off = off;
		}
	}
	return best;
}

/* Read digits into *value. Returns their number, or 0 if there are too many. */
static unsigned digits(const char **at, double *value)
{
	unsigned n = 0;

	for (; **at >= '0' && **at <= '9'; ++*at, n++)
		*value = *value * 10 + (**at - '0');
	return n > DIGITS_MAX ? 0 : n;
}

/* Read "2" or "2.5". strtod() is not used, because its decimal point depends on
 * the locale. */
static bool take_factor_part(const char **at, double *value)
{
	unsigned n;

	*value = 0;
	if (!digits(at, value))
		return false;
	if (**at != '.')
		return true;
	++*at;
	n = digits(at, value);
	*value /= pow(10, n);
	return n > 0;
}

static int parse_factor(const char *text, struct schedule_echo *echo)
{
	double value, over = 1;
	bool good = take_factor_part(&text, &value);

	if (good && *text == '/') {
		text++;
		good = take_factor_part(&text, &over);
	}
	if (!good || *text || !(over > 0))
		return -EINVAL;
	value /= over;
	if (!(value >= 1 && value <= SCHEDULE_ECHO_MAX))
		return -EINVAL;
	*echo = schedule_echo_nearest(value);
	return echo_reduce(echo);
}

int schedule_echo_parse(
	const char *text, struct schedule_echo *echo, struct error *err)
{
	if (parse_factor(text, echo) == 0)
		return 0;
	return error_set(err, -EINVAL,
		"'%s' is not an echo factor: it must be a number from 1 to %d, "
		"such as 2, 2.5 or 5/2",
		text, SCHEDULE_ECHO_MAX);
}

const char *schedule_echo_text(struct schedule_echo echo, char buf[ECHO_TEXT])
{
	char real[REAL_TEXT_MAX];

	if (echo.q && 1000 % echo.q == 0)
		(void)snprintf(buf, ECHO_TEXT, "%s",
			real_text(real, (double)echo.p / echo.q));
	else
		(void)snprintf(buf, ECHO_TEXT, "%u/%u", echo.p, echo.q);
	return buf;
}

uint64_t schedule_min_window(uint32_t batch, struct schedule_echo echo,
	uint32_t lag, enum schedule_point point)
{
	uint64_t lanes = div_up(echo.p, echo.q);
	uint64_t a_step = point == SCHEDULE_BATCH ? 1 : batch;
	uint64_t slots = (lag ? lag : 1) * a_step;
	uint64_t unit = point == SCHEDULE_BATCH ? batch : 1;

	/* With one lane, or a lag of one slot, a window of one batch is enough,
	 * because two servings never share a slot. */
	if (lanes == 1 || slots == 1)
		return batch;
	return (2 * slots * (lanes - 1) + a_step) * unit;
}

uint64_t schedule_default_window(uint32_t batch, struct schedule_echo echo,
	uint32_t lag, enum schedule_point point)
{
	uint64_t usual = max_u64(16 * (uint64_t)batch, 1024);

	return max_u64(usual, schedule_min_window(batch, echo, lag, point));
}

/* The number of examples that is assumed while the end is open. */
#define OPEN_EXAMPLES SCHEDULE_GLOBAL_MAX

static int check_buckets(const struct schedule_config *c, struct error *err)
{
	if (!c->buckets)
		return 0;
	if (c->mix || c->order != SCHEDULE_SHUFFLE)
		return error_set(err, -EINVAL,
			"bucket sorts a shuffled dataset or subset: leave out "
			"mix, shuffle_window and in_order");
	if (c->point != SCHEDULE_BATCH &&
		(c->echo.p > c->echo.q || c->echo_max.p > c->echo_max.q))
		return error_set(err, -EINVAL,
			"with bucket, echoes of single examples would mix "
			"lengths: echo must be 1, or echo_point batch");
	if (buckets_group(c->buckets) != (uint64_t)c->batch * c->world)
		return error_set(err, -EINVAL,
			"the buckets are for another batch or world");
	return 0;
}

/* Refuse orders in which the chosen examples cannot be served. */
static int check_choice(const struct schedule_config *c, struct error *err)
{
	if (c->open_end &&
		(c->subset || c->mix || c->epoch_examples != c->examples))
		return error_set(err, -EINVAL,
			"an open end excludes epoch_examples, subset and mix");
	if (c->subset && c->mix)
		return error_set(
			err, -EINVAL, "subset and mix exclude each other");
	if (c->subset && c->order == SCHEDULE_NEARBY)
		return error_set(err, -EINVAL,
			"a subset lies anywhere in the dataset, so "
			"shuffle_window cannot keep its examples near each "
			"other");
	if (c->mix && c->order != SCHEDULE_SHUFFLE)
		return error_set(err, -EINVAL,
			"a mix has an order of its own: leave out "
			"shuffle_window and in_order");
	return 0;
}

static int check_numbers(const struct schedule_config *c, struct error *err)
{
	if (c->open_end &&
		(c->order != SCHEDULE_IN_ORDER || c->epochs != 1 ||
			c->point == SCHEDULE_BATCH ||
			c->share != SCHEDULE_UNEVEN))
		return error_set(
			err, -EINVAL, "an open end needs one epoch, in order");
	if (!c->examples || c->examples > SCHEDULE_GLOBAL_MAX)
		return error_set(err, -EINVAL, "no examples, or too many");
	if (c->subset > c->examples)
		return error_set(err, -EINVAL,
			"subset is %" PRIu64 ": the dataset has %" PRIu64
			" examples",
			c->subset, c->examples);
	if (c->epoch_examples > SCHEDULE_GLOBAL_MAX)
		return error_set(err, -EINVAL,
			"epoch_examples is %" PRIu64 ": it must be at most "
			"%" PRIu64,
			c->epoch_examples, SCHEDULE_GLOBAL_MAX);
	if (c->epochs > SCHEDULE_GLOBAL_MAX / c->epoch_examples)
		return error_set(err, -EINVAL,
			"%" PRIu64 " epochs are too many: use 0 for no end",
			c->epochs);
	if (!c->batch || c->batch > SCHEDULE_BATCH_MAX)
		return error_set(err, -EINVAL, "batch %u: it must be 1 to %u",
			c->batch, SCHEDULE_BATCH_MAX);
	if (c->rank >= c->world)
		return error_set(err, -EINVAL,
			"rank is %u: it must be below world, %u", c->rank,
			c->world);
	if (c->lag > SCHEDULE_LAG_MAX)
		return error_set(err, -EINVAL, "lag %u: it must be 1 to %u",
			c->lag, SCHEDULE_LAG_MAX);
	if (c->point > SCHEDULE_BATCH || c->order > SCHEDULE_NEARBY ||
		c->share > SCHEDULE_EQUAL)
		return error_set(err, -EINVAL,
			"unknown echo point, order or division among the "
			"ranks");
	if (c->order == SCHEDULE_NEARBY && !c->nearby)
		return error_set(err, -EINVAL,
			"shuffle_window must be set for a shuffle of "
			"neighbours");
	return check_choice(c, err);
}

static int check_echo(struct schedule_config *c, struct error *err)
{
	if (!c->echo.p && !c->echo.q)
		c->echo = (struct schedule_echo){1, 1};
	if (!c->echo_max.p && !c->echo_max.q)
		c->echo_max = c->echo;
	if (echo_reduce(&c->echo) < 0 || echo_reduce(&c->echo_max) < 0)
		return error_set(err, -EINVAL,
			"an echo factor must be 1 to %d, with a denominator "
			"of at most %d",
			SCHEDULE_ECHO_MAX, SCHEDULE_DENOMINATOR_MAX);
	if (echo_above(c->echo, c->echo_max))
		return error_set(err, -EINVAL,
			"the echo factor %u/%u is above its maximum %u/%u",
			c->echo.p, c->echo.q, c->echo_max.p, c->echo_max.q);
	return 0;
}

static int check_window(struct schedule_config *c, struct error *err)
{
	uint64_t least =
		schedule_min_window(c->batch, c->echo_max, c->lag, c->point);

	if (!c->window)
		c->window = schedule_default_window(
			c->batch, c->echo_max, c->lag, c->point);
	if (c->window > SCHEDULE_WINDOW_MAX)
		return error_set(err, -EINVAL,
			"a window of %" PRIu64 " examples is too large",
			c->window);
	if (c->allow_small_window)
		least = c->batch;
	if (c->window < least)
		return error_set(err, -EINVAL,
			"window is %" PRIu64 ": this batch, echo and min_lag "
			"need %" PRIu64 " or more",
			c->window, least);
	return 0;
}

/* Fill in the defaults, and refuse invalid configurations. */
static int check(struct schedule_config *c, struct error *err)
{
	int r;

	if (!c->world)
		c->world = 1;
	if (!c->lag)
		c->lag = 1;
	if (c->open_end && !c->examples)
		c->examples = OPEN_EXAMPLES;
	if (!c->epoch_examples)
		c->epoch_examples =
			c->mix ? mix_examples(c->mix) : pass_examples(c);
	r = check_numbers(c, err);
	if (r == 0)
		r = check_echo(c, err);
	if (r == 0)
		r = check_buckets(c, err);
	if (r == 0)
		r = check_window(c, err);
	return r;
}

/* Set the numbers of fresh examples and units of this rank, and of units that
 * all ranks have. */
static void set_shares(struct schedule *s)
{
	const struct schedule_config *c = &s->c;
	uint64_t rest = s->total - s->base, common = rest / c->world;

	s->fresh = common;
	if (c->share == SCHEDULE_PAD)
		s->fresh = common = div_up(rest, c->world);
	else if (c->share == SCHEDULE_UNEVEN && rest % c->world > c->rank)
		s->fresh++;
	s->units = s->fresh / s->unit_examples;
	s->units_common = common / s->unit_examples;
	if (s->unit_examples > 1 && c->drop_last)
		/* whole batches, of which all ranks have the same number */
		s->units = s->units_common;
	else if (s->unit_examples > 1)
		s->units = div_up(s->fresh, s->unit_examples);
}

/* Set the spread. It follows from the window, and is less for a short run. */
static void spread_set(struct schedule *s)
{
	uint64_t run = max_u64(s->units_common, s->units ? 1 : 0);
	uint64_t lanes = s->segment[0].lanes;

	s->spread = s->c.window / s->unit_examples - s->slots_a_step;
	if (lanes > 1 && run < s->spread)
		s->spread = min_u64(s->spread, (lanes - 1) * run);
}

int schedule_begin(struct schedule *s, const struct schedule_config *config,
	struct schedule_echo echo, uint64_t base, uint64_t step_base,
	struct error *err)
{
	int r;

	*s = (struct schedule){.c = *config,
		.base = base,
		.step_base = step_base,
		.segments = 1};
	r = check(&s->c, err);
	if (r < 0)
		return r;
	s->total = run_examples(&s->c);
	if (base > s->total)
		return error_set(err, -EINVAL,
			"the position is after the end of the run");
	s->unit_examples = s->c.point == SCHEDULE_BATCH ? s->c.batch : 1;
	s->slots_a_step = s->c.batch / s->unit_examples;
	set_shares(s);
	s->segment[0].lanes = (uint32_t)div_up(echo.p, echo.q);
	spread_set(s);
	segment_init(s, &s->segment[0], 0, 0, echo);
	return 0;
}

bool schedule_has_end(const struct schedule *s)
{
	return !s->c.open_end || s->c.examples != OPEN_EXAMPLES;
}

int schedule_end(struct schedule *s, uint64_t fresh)
{
	struct schedule_segment *first = s->segment;

	if (schedule_has_end(s) || fresh > OPEN_EXAMPLES / s->c.world)
		return -EINVAL;
	while (s->segments > 1 && first[s->segments - 1].start >= fresh)
		s->segments--;
	s->c.examples = s->c.epoch_examples = s->total = fresh * s->c.world;
	s->fresh = s->units = s->units_common = fresh;
	if (s->segments > 1 || s->forgotten)
		return 0;
	/* Only a run without changes can be shorter than the spread. */
	spread_set(s);
	segment_init(
		s, first, 0, 0, (struct schedule_echo){first->p, first->q});
	return 0;
}

int schedule_init(struct schedule *s, const struct schedule_config *config,
	struct error *err)
{
	struct schedule_echo echo = config->echo;

	if (!echo.p && !echo.q)
		echo = (struct schedule_echo){1, 1};
	if (echo_reduce(&echo) < 0)
		/* check() refuses an invalid factor */
		echo = (struct schedule_echo){1, 1};
	return schedule_begin(s, config, echo, 0, 0, err);
}

const struct schedule_config *schedule_settings(const struct schedule *s)
{
	return &s->c;
}

uint64_t schedule_fresh_count(const struct schedule *s)
{
	return s->fresh;
}

uint64_t schedule_spread(const struct schedule *s)
{
	return s->spread * s->unit_examples;
}

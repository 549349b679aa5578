/* SPDX-License-Identifier: MIT */
/* Draws random cases of the schedule, and runs them. */
#include "schedule_scene.h"

static struct schedule_echo random_echo(struct dice *d)
{
	static const struct schedule_echo usual[] = {{1, 1}, {3, 2}, {2, 1},
		{5, 2}, {4, 1}, {8, 1}, {11, 10}, {5, 1}, {3, 1}};
	struct schedule_echo e;

	if (roll(d, 3))
		return usual[roll(d, 9)];
	e.q = 1 + (uint32_t)roll(d, 12);
	e.p = e.q + (uint32_t)roll(d, 6 * e.q);
	return e;
}

static void random_window(struct dice *d, struct schedule_config *c)
{
	uint64_t least =
		schedule_min_window(c->batch, c->echo_max, c->lag, c->point);

	c->allow_small_window = roll(d, 3) == 0;
	if (c->allow_small_window)
		c->window = c->batch + roll(d, 3 * least);
	else
		c->window = least + (roll(d, 2) ? roll(d, 3 * least) : 0);
}

/* Draw an epoch that is not a pass, and a subset. */
static void random_choice(struct dice *d, struct schedule_config *c)
{
	if (roll(d, 3) == 0)
		c->epoch_examples = 1 + roll(d, 2 * c->examples);
	if (roll(d, 3) == 0 && c->order != SCHEDULE_NEARBY) {
		c->subset = 1 + roll(d, c->examples);
		c->subset_seed = roll(d, 1000);
	}
}

static void random_config(struct dice *d, struct schedule_config *c)
{
	static const uint32_t worlds[] = {1, 1, 2, 3, 7};
	uint64_t scale = roll(d, 4) ? 300 : 40;

	*c = (struct schedule_config){
		.examples = 1 + roll(d, scale),
		.epochs = 1 + roll(d, 4),
		.seed = roll(d, 1000),
		.batch = 1 + (uint32_t)roll(d, roll(d, 3) ? 8 : 40),
		.world = worlds[roll(d, 5)],
		.lag = roll(d, 4) ? 1 : 1 + (uint32_t)roll(d, 3),
		.echo = random_echo(d),
		.point = (enum schedule_point)roll(d, 3),
		.order = (enum schedule_order)roll(d, 3),
		.share = (enum schedule_share)roll(d, 3),
		.nearby = 1 + roll(d, 50),
		.drop_last = roll(d, 2),
	};
	c->echo_max = (struct schedule_echo){8, 1};
	if (roll(d, 3))
		c->echo_max = c->echo;
	random_window(d, c);
	random_choice(d, c);
}

/* Cut the dataset into parts, and mix them. */
static void random_mix(struct scene *sc)
{
	struct mix_stage stages[2] = {
		{.weights = sc->weight[0]}, {.weights = sc->weight[1]}};
	struct schedule_config *c = &sc->c;
	uint64_t first = 0, left = c->examples;

	while (left && sc->parts < PARTS_MAX) {
		struct mix_part *part = &sc->part[sc->parts++];

		*part = (struct mix_part){
			.first = first, .examples = 1 + roll(&sc->dice, left)};
		first += part->examples;
		left -= part->examples;
	}
	for (uint32_t j = 0; j < sc->parts; j++) {
		uint32_t w = (uint32_t)roll(&sc->dice, 6) + (j == 0);

		sc->weight[0][j] = sc->weight[1][sc->parts - 1 - j] = w;
	}
	if (!c->epoch_examples)
		c->epoch_examples = first;
	if (c->epochs > 1)
		stages[1].epoch = sc->second_stage =
			1 + roll(&sc->dice, c->epochs - 1);
	ck_assert_int_eq(
		mix_new(&sc->mix,
			&(struct mix_config){.parts = sc->part,
				.stages = stages,
				.part_count = sc->parts,
				.stage_count = sc->second_stage ? 2 : 1,
				.epoch_examples = c->epoch_examples,
				.seed = c->seed},
			NULL),
		0);
	c->mix = sc->mix;
}

/* Give the examples lengths, and sort them into buckets. */
static void random_buckets(struct scene *sc)
{
	struct schedule_config *c = &sc->c;

	if (c->point != SCHEDULE_BATCH)
		c->echo = c->echo_max = (struct schedule_echo){1, 1};
	sc->lengths = calloc(c->examples, sizeof(*sc->lengths));
	for (uint64_t i = 0; i < c->examples; i++)
		sc->lengths[i] = (uint32_t)roll(&sc->dice, 50);
	ck_assert_int_eq(
		buckets_new(&sc->buckets,
			&(struct buckets_config){.lengths = sc->lengths,
				.examples = c->examples,
				.seed = c->seed,
				.batches = 1 + (uint32_t)roll(&sc->dice, 5),
				.group = c->batch * c->world},
			NULL),
		0);
	c->buckets = sc->buckets;
}

/* --- running it, with changes on the way --- */

static void random_change(struct scene *sc, uint64_t step)
{
	struct schedule_echo e = random_echo(&sc->dice);
	uint64_t begins = 0;

	if (sc->changes == CHANGES_MAX)
		return;
	for (uint32_t i = 0; i < sc->c.world; i++) {
		struct schedule *s = &sc->s[i];
		uint32_t before = s->segments;
		bool here;

		here = schedule_change(s, step, e) == 0 && s->segments > before;
		/* Either all ranks accept the change, from the same unit on, or
		 * none does. */
		ck_assert(i == 0 || here == (begins > 0));
		if (!here)
			continue;
		ck_assert(i == 0 ||
			begins * s->unit_examples == schedule_change_begins(s));
		begins = schedule_change_begins(s) / s->unit_examples;
	}
	if (!begins)
		return;
	sc->changes++;
	sc->asked[sc->changes] = step;
	sc->log[sc->changes] = (struct change){begins, e};
}

void scene_run(struct scene *sc)
{
	struct schedule_cursor cur[WORLD_MAX];
	bool more = true, changing = roll(&sc->dice, 2);

	for (uint32_t i = 0; i < sc->c.world; i++) {
		sc->c.rank = i;
		ck_assert_uint_eq(schedule_init(&sc->s[i], &sc->c, NULL), 0);
		ck_assert_uint_eq(schedule_seek(&sc->s[i], &cur[i], 0), 0);
	}
	sc->log[0].echo = sc->s[0].c.echo;
	for (uint64_t step = 0; more; step++) {
		more = false;
		if (changing && roll(&sc->dice, 4) == 0)
			random_change(sc, step);
		for (uint32_t i = 0; i < sc->c.world; i++)
			more |= stream_step(&sc->st[i], &sc->s[i], &cur[i]);
	}
}

void scene_draw(struct scene *sc)
{
	random_config(&sc->dice, &sc->c);
	if (sc->c.order == SCHEDULE_SHUFFLE && !sc->c.subset &&
		roll(&sc->dice, 2))
		random_mix(sc);
	else if (sc->c.order == SCHEDULE_SHUFFLE && roll(&sc->dice, 2))
		random_buckets(sc);
}

void scene_free(struct scene *sc)
{
	for (uint32_t r = 0; r < sc->c.world; r++)
		stream_free(&sc->st[r]);
	mix_free(sc->mix);
	buckets_free(sc->buckets);
	free(sc->lengths);
}

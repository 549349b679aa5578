/* SPDX-License-Identifier: MIT */
/* Changes of the echo factor, and the figures of a schedule. The owner of the
 * schedule calls schedule_change(). All other functions are pure, and any
 * thread may call them. */
#include "common/schedule/lane_impl.h"

#include <errno.h>
#include <string.h>

/* --- changes --- */

/* Find the first tick that begins at or after a step. */
static int first_tick(const struct schedule *s, uint64_t step, uint64_t *tick)
{
	struct schedule_cursor c;
	int r = schedule_seek(s, &c, step);

	if (r == 0)
		*tick = c.tick + (c.offset > 0);
	return r;
}

bool segment_fits(const struct schedule *s, uint64_t start)
{
	uint64_t behind = s->c.open_end ? 0 : s->spread;

	return start < s->units_common && start + behind < s->units_common;
}

static void append(
	struct schedule *s, uint64_t start, struct schedule_echo echo)
{
	uint64_t slot = slots_before(s, start);

	if (s->segments == SCHEDULE_SEGMENTS) {
		memmove(s->segment, s->segment + 1,
			sizeof(s->segment[0]) * (SCHEDULE_SEGMENTS - 1));
		s->segments--;
		s->forgotten = true;
	}
	segment_init(s, &s->segment[s->segments], start, slot, echo);
	s->segments++;
}

int schedule_change(
	struct schedule *s, uint64_t step, struct schedule_echo echo)
{
	const struct schedule_segment *last = &s->segment[s->segments - 1];
	uint64_t start = 0;
	int r;

	if (echo_reduce(&echo) < 0 || echo_above(echo, s->c.echo_max))
		return -EINVAL;
	r = first_tick(s, step, &start);
	if (r < 0)
		return r;
	if (last->start > start)
		return -EBUSY;
	if (last->p == echo.p && last->q == echo.q)
		return 0;
	start = max_u64(start, last->start + max_u64(s->spread, 1));
	if (!segment_fits(s, start))
		return -ERANGE;
	append(s, start, echo);
	return 0;
}

uint64_t schedule_change_begins(const struct schedule *s)
{
	return s->segment[s->segments - 1].start * s->unit_examples;
}

struct schedule_echo schedule_echo_at(const struct schedule *s, uint64_t step)
{
	uint64_t unit = schedule_fresh_before(s, step) / s->unit_examples;
	const struct schedule_segment *seg = &s->segment[segment_at(s, unit)];

	return (struct schedule_echo){seg->p, seg->q};
}

/* --- figures --- */

/* Returns the number of servings that drop_last leaves out of the stream. */
static uint64_t count_dropped(const struct schedule *s, uint64_t slots)
{
	const struct schedule_segment *last = &s->segment[s->segments - 1];
	uint64_t begun = s->units * s->unit_examples;

	if (!s->c.drop_last)
		return 0;
	if (s->unit_examples == 1)
		return slots % s->slots_a_step;
	return (s->fresh - min_u64(s->fresh, begun)) *
		segment_servings(last, s->units - last->start);
}

static void count_run(const struct schedule *s, struct schedule_facts *f)
{
	uint64_t rest = s->total - s->base, served = s->fresh, begun;
	uint64_t slots = slots_before(s, ticks_end(s));

	f->steps = schedule_steps(s);
	if (!s->c.epochs)
		return;
	f->slots_dropped = count_dropped(s, slots);
	begun = s->units * s->unit_examples;
	served = min_u64(served, begun);
	if (s->unit_examples == 1 && s->c.drop_last)
		served = schedule_fresh_before(s, f->steps);
	f->fresh_dropped = s->fresh - served;
	if (s->c.share == SCHEDULE_EQUAL)
		f->fresh_dropped += rest % s->c.world > s->c.rank;
}

static void count_drain(const struct schedule *s, struct schedule_facts *f)
{
	struct schedule_slot slot;
	uint64_t last, fresh;

	fresh = min_u64(s->units * s->unit_examples, s->fresh);
	if (!s->c.epochs || !fresh ||
		schedule_fresh(s, fresh - 1, &slot, &last) < 0)
		return;
	f->drain_steps = f->steps > last ? f->steps - last - 1 : 0;
}

/* Returns the maximum number of units with servings left: the classes of lanes
 * K - 2 and K - 1, and the units of the batch that is being filled. */
static uint64_t pool_units(
	const struct schedule *s, const struct schedule_segment *seg)
{
	uint64_t touched =
		1 + (uint64_t)(s->slots_a_step - 1) * seg->q / seg->p;
	uint64_t inner, outer;

	touched += (uint64_t)(s->slots_a_step - 1) * seg->q % seg->p != 0;
	if (seg->lanes == 1)
		return s->slots_a_step;
	inner = segment_delay(s, seg, seg->lanes - 2);
	outer = s->spread - inner;
	if (seg->part)
		outer = div_up(outer * seg->part, seg->q);
	return min_u64(inner + outer + touched, s->spread + s->slots_a_step);
}

/* Find the step at which the promise of the lag ends: see 4 of the proofs in
 * lane.c. */
static void judge_promise(const struct schedule *s, struct schedule_facts *f)
{
	const struct schedule_segment *last = &s->segment[s->segments - 1];
	uint64_t lag = (uint64_t)s->c.lag * s->slots_a_step;

	f->exception_step = UINT64_MAX;
	f->apart = true;
	for (uint32_t i = 0; i < s->segments && lag > 1; i++)
		if (s->segment[i].lanes > 1 &&
			segment_gap(s, &s->segment[i]) < 2 * lag)
			f->apart = false;
	if (lag > 1 && last->part && s->c.epochs) {
		uint64_t tick =
			s->units + segment_delay(s, last, last->lanes - 2);

		f->exception_step =
			s->step_base + slots_before(s, tick) / s->slots_a_step;
	}
}

void schedule_facts(const struct schedule *s, struct schedule_facts *facts)
{
	const struct schedule_segment *seg = &s->segment[s->segments - 1];
	uint64_t ramp = segment_slots(s, seg, UINT64_MAX, s->spread);

	*facts = (struct schedule_facts){
		.window = s->c.window,
		.fresh = s->fresh,
		.ramp_steps =
			seg->lanes > 1 ? div_up(ramp, s->slots_a_step) : 0,
		.pool_max = min_u64(
			pool_units(s, seg) * s->unit_examples, s->fresh),
	};
	count_run(s, facts);
	count_drain(s, facts);
	judge_promise(s, facts);
}

/* SPDX-License-Identifier: MIT */
/* The schedule as a stream: batches in order, fresh examples in order, and the
 * step of a serving. Functions are pure except that they move a cursor, which
 * belongs to one thread. */
#include "common/schedule/lane_impl.h"

#include <errno.h>

#include "common/base/hash.h"
#include "common/schedule/permute.h"

/* The purpose of a hash. The purpose is hashed, too, so that the values of two
 * purposes are independent. */
enum purpose { PASS_ORDER, NEARBY_ORDER, AUGMENT, SUBSET };

/* --- from global numbers to examples --- */

static uint64_t order_key(const struct schedule *s, enum purpose purpose,
	uint64_t pass, uint64_t block)
{
	uint64_t words[] = {purpose, pass, block};

	return hash64(words, sizeof(words), s->c.seed);
}

static uint64_t shuffle_nearby(
	const struct schedule *s, uint64_t pass, uint64_t at)
{
	uint64_t begin = at - at % s->c.nearby;
	uint64_t end = min_u64(begin + s->c.nearby, s->c.examples);
	struct permute p;

	permute_init(&p, end - begin, order_key(s, NEARBY_ORDER, pass, begin));
	return begin + permute_at(&p, at - begin);
}

/* Returns the example at a position of a pass. */
static uint64_t pass_example(
	const struct schedule *s, uint64_t pass, uint64_t at)
{
	struct permute p;

	switch (s->c.order) {
	case SCHEDULE_IN_ORDER:
		return at;
	case SCHEDULE_NEARBY:
		return shuffle_nearby(s, pass, at);
	case SCHEDULE_SHUFFLE:
		break;
	}
	permute_init(
		&p, pass_examples(&s->c), order_key(s, PASS_ORDER, pass, 0));
	return permute_at(&p, at);
}

/* A subset is the beginning of one permutation of the dataset, so that each
 * subset is a part of every larger one with the same seed. */
static uint64_t subset_example(const struct schedule *s, uint64_t at)
{
	uint64_t words[] = {SUBSET, 0, 0};
	struct permute p;

	permute_init(&p, s->c.examples,
		hash64(words, sizeof(words), s->c.subset_seed));
	return permute_at(&p, at);
}

/* The example at a place of a pass before it is sorted into buckets. */
static uint64_t chosen_example(const void *arg, uint64_t pass, uint64_t at)
{
	const struct schedule *s = arg;
	uint64_t index = pass_example(s, pass, at);

	return s->c.subset ? subset_example(s, index) : index;
}

static uint64_t bucket_example(
	const struct schedule *s, uint64_t pass, uint64_t at)
{
	uint64_t n = pass_examples(&s->c);
	struct bucket_pass p = {.pass = pass,
		.begin = pass * n,
		.examples = n,
		.example = chosen_example,
		.arg = s};

	return buckets_at(s->c.buckets, &p, at);
}

/* Set the epoch, pass and example of global number g. */
static void pick(
	const struct schedule *s, uint64_t g, struct schedule_slot *slot)
{
	uint64_t n = pass_examples(&s->c);

	slot->epoch = g / s->c.epoch_examples;
	if (s->c.mix) {
		struct mix_pick found;

		mix_at(s->c.mix, g, &found);
		slot->part = found.part;
		slot->pass = found.pass;
		slot->index = found.index;
		return;
	}
	slot->pass = g / n;
	slot->index = s->c.buckets ? bucket_example(s, slot->pass, g % n)
				   : chosen_example(s, slot->pass, g % n);
}

uint64_t schedule_substitute(const struct schedule *s,
	const struct schedule_slot *slot, uint64_t number)
{
	if (s->c.mix)
		return mix_member(s->c.mix, slot->part, number);
	number %= pass_examples(&s->c);
	return s->c.subset ? subset_example(s, number) : number;
}

uint64_t schedule_augment_seed(
	const struct schedule *s, const struct schedule_slot *slot, uint32_t k)
{
	uint64_t words[] = {AUGMENT, slot->pass, slot->index,
		s->c.point == SCHEDULE_BEFORE ? k : 0};

	return hash64(words, sizeof(words), s->c.seed);
}

static void fill_slot(const struct schedule *s, struct schedule_slot *slot,
	uint64_t f, uint32_t echo, uint32_t servings)
{
	uint64_t v = s->c.epoch_examples;
	uint64_t g = s->base + f * s->c.world + s->c.rank;

	*slot = (struct schedule_slot){.fresh = f,
		.echo = echo,
		.servings = servings,
		.last = echo + 1 == servings,
		.padded = g >= s->total};
	/* repeat the examples with which the last epoch began */
	if (slot->padded)
		g = s->total - v + (g - s->total) % v;
	pick(s, g, slot);
	slot->augment_seed = schedule_augment_seed(s, slot, echo);
}

/* Fill in the examples of one slot of the stream of units. */
static uint32_t fill_unit(const struct schedule *s, const struct lane_slot *l,
	struct schedule_slot *slots)
{
	uint64_t v = lane_unit(s, l->seg, l->echo, l->v);
	uint64_t f = (l->seg->start + v) * s->unit_examples;
	uint32_t n = (uint32_t)min_u64(s->unit_examples, s->fresh - f);
	uint32_t servings = segment_servings(l->seg, v);

	for (uint32_t i = 0; i < n; i++)
		fill_slot(s, &slots[i], f + i, l->echo, servings);
	return n;
}

/* Find the first slot of a step, or the end of the run if that is earlier. */
static int step_slot(const struct schedule *s, uint64_t step, uint64_t *slot)
{
	uint64_t x;

	if (step < s->step_base || step > schedule_steps(s) ||
		__builtin_mul_overflow(
			step - s->step_base, s->slots_a_step, &x))
		return -ERANGE;
	*slot = min_u64(x, slots_before(s, ticks_end(s)));
	return 0;
}

/* --- batches in order --- */

int schedule_seek(
	const struct schedule *s, struct schedule_cursor *cursor, uint64_t step)
{
	uint64_t slot = 0;
	int r = step_slot(s, step, &slot);

	if (r == 0)
		r = slot_find(s, slot, &cursor->tick, &cursor->offset);
	if (r == 0)
		cursor->step = step;
	return r;
}

uint32_t schedule_next(const struct schedule *s, struct schedule_cursor *cursor,
	struct schedule_slot *slots)
{
	struct lane_slot lanes[TICK_SLOTS_MAX];
	uint64_t end = ticks_end(s);
	uint32_t n = 0, taken = 0;
	struct schedule_cursor c = *cursor;

	while (taken < s->slots_a_step && c.tick < end) {
		uint32_t count = tick_slots(s, c.tick, lanes);

		for (; c.offset < count && taken < s->slots_a_step; taken++)
			n += fill_unit(s, &lanes[c.offset++], slots + n);
		if (c.offset < count)
			break;
		c.tick++;
		c.offset = 0;
	}
	if (!n || (s->c.drop_last && taken < s->slots_a_step))
		return 0;
	c.step++;
	*cursor = c;
	return n;
}

/* --- one slot at a time --- */

int schedule_peek(const struct schedule *s, struct schedule_cursor *cursor,
	struct schedule_slot *slot)
{
	struct lane_slot lanes[TICK_SLOTS_MAX];
	uint64_t end = ticks_end(s);

	for (; cursor->tick < end; cursor->tick++, cursor->offset = 0) {
		if (cursor->offset >= tick_slots(s, cursor->tick, lanes))
			continue;
		(void)fill_unit(s, &lanes[cursor->offset], slot);
		return 1;
	}
	return 0;
}

void schedule_advance(const struct schedule *s, struct schedule_cursor *cursor)
{
	uint64_t slot = slots_before(s, cursor->tick) + ++cursor->offset;

	cursor->step = s->step_base + slot / s->slots_a_step;
}

bool schedule_is_owed(const struct schedule *s,
	const struct schedule_cursor *cursor, uint64_t f)
{
	struct lane_slot slots[TICK_SLOTS_MAX];
	const struct schedule_segment *seg = &s->segment[segment_at(s, f)];
	uint64_t tick;
	uint32_t k, at = 0;

	if (f >= s->fresh || f < seg->start)
		return false;
	k = segment_servings(seg, f - seg->start) - 1;
	tick = seg->start + segment_delay(s, seg, k) +
		lane_place(s, seg, k, f - seg->start);
	if (tick != cursor->tick)
		return tick > cursor->tick;
	(void)tick_slots(s, tick, slots);
	while (slots[at].seg != seg || slots[at].echo != k)
		/* the loop ends, because the lane has a slot in this tick */
		at++;
	return at >= cursor->offset;
}

/* --- fresh examples in order --- */

int schedule_fresh(const struct schedule *s, uint64_t f,
	struct schedule_slot *slot, uint64_t *need_by)
{
	uint64_t unit = f / s->unit_examples;
	const struct schedule_segment *seg;

	if (f >= s->fresh || unit >= s->units || !tick_known(s, unit))
		return -ERANGE;
	seg = &s->segment[segment_at(s, unit)];
	fill_slot(s, slot, f, 0, segment_servings(seg, unit - seg->start));
	*need_by = s->step_base + slots_before(s, unit) / s->slots_a_step;
	return 0;
}

uint64_t schedule_fresh_before(const struct schedule *s, uint64_t step)
{
	struct schedule_cursor c;

	if (schedule_seek(s, &c, step) < 0)
		return step > schedule_steps(s) ? s->fresh : 0;
	return min_u64(
		units_before(s, c.tick, c.offset) * s->unit_examples, s->fresh);
}

int schedule_serving_step(
	const struct schedule *s, uint64_t f, uint32_t k, uint64_t *step)
{
	struct lane_slot slots[TICK_SLOTS_MAX];
	uint64_t unit = f / s->unit_examples, v, tick;
	const struct schedule_segment *seg = &s->segment[segment_at(s, unit)];
	uint32_t before = 0;

	if (f >= s->fresh || unit >= s->units || unit < seg->start ||
		k >= segment_servings(seg, unit - seg->start))
		return -ERANGE;
	v = lane_place(s, seg, k, unit - seg->start);
	tick = seg->start + segment_delay(s, seg, k) + v;
	if (!tick_known(s, tick))
		return -ERANGE;
	(void)tick_slots(s, tick, slots);
	while (slots[before].seg != seg || slots[before].echo != k)
		/* the loop ends, because the lane has a slot in this tick */
		before++;
	*step = s->step_base +
		(slots_before(s, tick) + before) / s->slots_a_step;
	return 0;
}

uint64_t schedule_steps(const struct schedule *s)
{
	uint64_t slots;

	if (!s->c.epochs)
		return UINT64_MAX;
	slots = slots_before(s, ticks_end(s));
	return s->step_base +
		(s->c.drop_last ? slots / s->slots_a_step
				: div_up(slots, s->slots_a_step));
}

/* Returns the end of an epoch for rank `r`: the step after the one that
 * contains the rank's last fresh example of the epoch. */
static uint64_t epoch_end(const struct schedule *s, uint64_t epoch, uint64_t r)
{
	uint64_t n = s->c.epoch_examples, f = s->fresh, step;
	struct schedule_slot slot;

	if (epoch < s->total / n - 1) {
		uint64_t end = (epoch + 1) * n, begin = s->base + r;

		f = end > begin ? div_up(end - begin, s->c.world) : 0;
	}
	f = min_u64(f, min_u64(s->fresh, s->units * s->unit_examples));
	if (!f || schedule_fresh(s, f - 1, &slot, &step) < 0)
		return s->step_base;
	return min_u64(step + 1, schedule_steps(s));
}

uint64_t schedule_epoch_end(const struct schedule *s, uint64_t epoch)
{
	return epoch_end(s, epoch, s->c.rank);
}

uint64_t schedule_epoch_end_all(const struct schedule *s, uint64_t epoch)
{
	return epoch_end(s, epoch, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * Saves a position of the schedule, and continues from it, with the same or
 * another world. The bytes are little-endian and in the order of the table
 * below; doc/schedule.md has them. Pure functions, any thread.
 */
#include "common/schedule/lane_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/hash.h"

/* Version 2 adds the examples of an epoch and a hash of the subset or the mix.
 * It is written only if a run has one of them, so that older programs read all
 * other states. */
#define STATE_VERSION 1
#define STATE_VERSION_CHOICE 2
/* one before the present segment, the present one, and two that follow */
#define SEGMENTS_SAVED 4

struct saved_segment {
	uint64_t start;
	struct schedule_echo echo;
};

/* The contents of a saved state. */
struct saved {
	struct schedule_config c; /* all members but `rank` are saved */
	uint64_t base, step_base, step;
	uint64_t anchor_slot; /* number of slots before the segment `anchor` */
	uint32_t anchor;
	uint32_t segments;
	uint64_t choice; /* choice_hash() */
	bool forgotten;	 /* segments before the first saved one were dropped */
	struct saved_segment segment[SEGMENTS_SAVED];
};

/* Returns a hash of the choice of examples and their proportions; 0: the whole
 * dataset. */
static uint64_t choice_hash(const struct schedule_config *c)
{
	uint64_t words[] = {c->subset, c->subset ? c->subset_seed : 0,
		c->mix ? mix_hash(c->mix) : 0,
		c->buckets ? buckets_hash(c->buckets) : 0};
	size_t bytes = c->buckets ? sizeof(words) : 3 * sizeof(*words);

	return c->subset || c->mix || c->buckets ? hash64(words, bytes, 1) : 0;
}

/* Reads or writes the fields, so that there is one list of fields for both. */
struct codec {
	uint8_t *out;
	const uint8_t *in;
	size_t at, size; /* greater than `size` if bytes were missing */
};

static void field(struct codec *c, uint64_t *value, unsigned bytes)
{
	if (c->in)
		*value = 0;
	for (unsigned i = 0; i < bytes; i++, c->at++) {
		if (c->at >= c->size)
			continue;
		if (c->in)
			*value |= (uint64_t)c->in[c->at] << (8 * i);
		else
			c->out[c->at] = (uint8_t)(*value >> (8 * i));
	}
}

static void field32(struct codec *c, uint32_t *value, unsigned bytes)
{
	uint64_t wide = *value;

	field(c, &wide, bytes);
	*value = (uint32_t)wide;
}

static void echo_field(struct codec *c, struct schedule_echo *echo)
{
	field32(c, &echo->p, 2);
	field32(c, &echo->q, 2);
}

/* Pack the small fields into one number. */
static uint32_t pack(const struct saved *v)
{
	return (uint32_t)v->c.point | (uint32_t)v->c.order << 2 |
		(uint32_t)v->c.share << 4 | (uint32_t)v->c.drop_last << 6 |
		(uint32_t)v->c.allow_small_window << 7 |
		(uint32_t)v->forgotten << 8 | v->anchor << 9 |
		v->segments << 12 | (uint32_t)v->c.open_end << 15;
}

static void unpack(struct saved *v, uint32_t bits)
{
	v->c.point = (enum schedule_point)(bits & 3);
	v->c.order = (enum schedule_order)(bits >> 2 & 3);
	v->c.share = (enum schedule_share)(bits >> 4 & 3);
	v->c.drop_last = bits >> 6 & 1;
	v->c.allow_small_window = bits >> 7 & 1;
	v->forgotten = bits >> 8 & 1;
	v->anchor = bits >> 9 & 7;
	v->segments = bits >> 12 & 7;
	v->c.open_end = bits >> 15 & 1;
}

static void code(struct codec *c, struct saved *v, uint32_t *version)
{
	uint32_t bits = pack(v);

	field32(c, version, 1);
	field32(c, &bits, 2);
	if (c->in)
		unpack(v, bits);
	field(c, &v->c.examples, 8);
	field(c, &v->c.epochs, 8);
	field(c, &v->c.seed, 8);
	field(c, &v->c.nearby, 8);
	field(c, &v->c.window, 4);
	field32(c, &v->c.batch, 4);
	field32(c, &v->c.world, 4);
	field32(c, &v->c.lag, 2);
	echo_field(c, &v->c.echo);
	echo_field(c, &v->c.echo_max);
	field(c, &v->step, 8);
	field(c, &v->step_base, 8);
	field(c, &v->base, 8);
	field(c, &v->anchor_slot, 8);
	for (uint32_t i = 0; i < v->segments && i < SEGMENTS_SAVED; i++) {
		field(c, &v->segment[i].start, 8);
		echo_field(c, &v->segment[i].echo);
	}
	if (*version >= STATE_VERSION_CHOICE) {
		field(c, &v->c.epoch_examples, 8);
		field(c, &v->choice, 8);
	}
}

size_t schedule_save(const struct schedule *s, uint64_t step,
	uint8_t out[SCHEDULE_STATE_BYTES])
{
	struct codec codec = {.out = out, .size = SCHEDULE_STATE_BYTES};
	struct saved v = {.c = s->c,
		.base = s->base,
		.step_base = s->step_base,
		.step = step,
		.choice = choice_hash(&s->c)};
	bool usual = s->c.epoch_examples == s->c.examples && !s->c.subset &&
		!s->c.mix && !s->c.buckets;
	uint32_t version = usual ? STATE_VERSION : STATE_VERSION_CHOICE;
	uint32_t now, first;
	struct schedule_cursor c;

	if (schedule_seek(s, &c, step) < 0)
		return 0;
	now = segment_at(s, c.tick);
	first = now ? now - 1 : 0;
	v.segments = s->segments - first;
	if (v.segments > SEGMENTS_SAVED)
		return 0;
	v.anchor = now - first;
	v.anchor_slot = s->segment[now].slot;
	v.forgotten = first > 0 || s->forgotten;
	for (uint32_t i = 0; i < v.segments; i++) {
		const struct schedule_segment *seg = &s->segment[first + i];

		v.segment[i] =
			(struct saved_segment){seg->start, {seg->p, seg->q}};
	}
	code(&codec, &v, &version);
	return codec.at;
}

/* --- restoring --- */

static int read_state(const uint8_t *state, size_t size, struct saved *v)
{
	struct codec codec = {.in = state, .size = size};
	uint32_t version = 0;

	*v = (struct saved){0};
	code(&codec, v, &version);
	if (v->c.point > SCHEDULE_BATCH || v->c.order > SCHEDULE_NEARBY ||
		v->c.share > SCHEDULE_EQUAL)
		return -EBADMSG;
	if (version == STATE_VERSION)
		v->c.epoch_examples = v->c.examples;
	if (!version || version > STATE_VERSION_CHOICE || codec.at != size ||
		!v->segments || v->segments > SEGMENTS_SAVED || v->anchor > 1 ||
		v->anchor >= v->segments || (v->forgotten && !v->anchor))
		return -EBADMSG;
	for (uint32_t i = 0; i < v->segments; i++) {
		struct schedule_echo e = v->segment[i].echo;

		if (echo_reduce(&e) < 0 || e.p != v->segment[i].echo.p)
			return -EBADMSG;
	}
	return 0;
}

static int compare_echo(const char *name, struct schedule_echo old,
	struct schedule_echo now, struct error *err)
{
	char was[ECHO_TEXT], is[ECHO_TEXT];

	if (old.p == now.p && old.q == now.q)
		return 0;
	return error_set(err, -EINVAL, "saved with %s %s, not %s", name,
		schedule_echo_text(old, was), schedule_echo_text(now, is));
}

static const char *const point_words[] = {
	[SCHEDULE_BEFORE] = "before",
	[SCHEDULE_AFTER] = "after",
	[SCHEDULE_BATCH] = "batch",
};

static const char *const order_words[] = {
	[SCHEDULE_SHUFFLE] = "shuffled",
	[SCHEDULE_IN_ORDER] = "in_order",
	[SCHEDULE_NEARBY] = "shuffle_window",
};

static const char *const share_words[] = {
	[SCHEDULE_UNEVEN] = "uneven",
	[SCHEDULE_PAD] = "pad_ranks",
	[SCHEDULE_EQUAL] = "equal_ranks",
};

static const char *const last_words[] = {"short", "drop"};
static const char *const end_words[] = {"known", "open"};

/* Find the first option that differs, and set the error. `now` has its defaults
 * filled in. The number of epochs may differ, so it is not compared here. */
static int compare_configs(const struct schedule_config *old,
	const struct schedule_config *now, struct error *err)
{
	bool same_world = old->world == now->world;
	const struct {
		const char *name;
		uint64_t old, now;
		bool free; /* the option may differ if the world differs */
		const char *const *words;
	} rows[] = {
		{"examples", old->examples, now->examples, false, NULL},
		{"seed", old->seed, now->seed, false, NULL},
		{"order", old->order, now->order, false, order_words},
		{"shuffle_window", old->nearby, now->nearby, false, NULL},
		{"echo_point", old->point, now->point, false, point_words},
		{"shares", old->share, now->share, false, share_words},
		{"last", old->drop_last, now->drop_last, false, last_words},
		{"end", old->open_end, now->open_end, false, end_words},
		{"batch", old->batch, now->batch, true, NULL},
		{"window", old->window, now->window, true, NULL},
		{"min_lag", old->lag, now->lag, true, NULL},
	};
	int r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].old == rows[i].now || (!same_world && rows[i].free))
			continue;
		if (rows[i].words)
			return error_set(err, -EINVAL,
				"saved with %s %s, not %s", rows[i].name,
				rows[i].words[rows[i].old],
				rows[i].words[rows[i].now]);
		return error_set(err, -EINVAL,
			"saved with %s %" PRIu64 ", not %" PRIu64, rows[i].name,
			rows[i].old, rows[i].now);
	}
	r = compare_echo("echo", old->echo, now->echo, err);
	if (r == 0)
		r = compare_echo("echo_max", old->echo_max, now->echo_max, err);
	return r;
}

/* Install the saved segments. Returns 0, or -EBADMSG if no schedule can have
 * them. */
static int install(struct schedule *s, const struct saved *v)
{
	for (uint32_t i = 0; i < v->segments; i++) {
		const struct saved_segment *seg = &v->segment[i];
		uint64_t start = seg->start, slot = 0, room;

		room = i ? s->segment[i - 1].start + max_u64(s->spread, 1) : 0;
		if (start < room || (start && !segment_fits(s, start)) ||
			(!i && !v->forgotten && start))
			return -EBADMSG;
		if (i == v->anchor)
			slot = v->anchor_slot;
		else if (i > v->anchor)
			slot = slots_before(s, start);
		if (i && (slot < start || slot / SCHEDULE_ECHO_MAX > start))
			return -EBADMSG;
		segment_init(s, &s->segment[i], start, slot, seg->echo);
		s->segments = i + 1;
	}
	s->forgotten = v->forgotten;
	return 0;
}

/* Find a saved step. The step may be a few steps after the end of this rank's
 * run, because the rank that has saved the state may have more steps. */
static int seek_saved(
	const struct schedule *s, uint64_t step, struct schedule_cursor *cursor)
{
	uint64_t end = schedule_steps(s);

	if (step > end && step - end <= SCHEDULE_ECHO_MAX)
		step = end;
	return schedule_seek(s, cursor, step);
}

/* Rebuild the saved schedule as it was on rank `rank`. */
static int revive(struct schedule *s, const struct saved *v, uint32_t rank,
	struct schedule_cursor *cursor)
{
	struct schedule_config c = v->c;
	int r;

	c.rank = rank;
	r = schedule_begin(
		s, &c, v->segment[0].echo, v->base, v->step_base, NULL);
	if (r == 0)
		r = install(s, v);
	if (r == 0)
		r = seek_saved(s, v->step, cursor);
	return r < 0 ? -EBADMSG : 0;
}

/* Returns the number of servings of decoded examples that are still to come. */
static uint64_t owed(const struct schedule *s, const struct schedule_cursor *c)
{
	uint32_t now = segment_at(s, c->tick), i = now ? now - 1 : 0;
	uint64_t decoded = units_before(s, c->tick, c->offset), sum = 0;

	for (; i <= now; i++) {
		const struct schedule_segment *seg = &s->segment[i];
		uint64_t n = segment_units(s, i), ticks = c->tick - seg->start;
		uint64_t v = min_u64(decoded - seg->start, n);

		sum += v * seg->whole + segment_extras(seg, v);
		sum -= segment_slots(s, seg, n, ticks);
	}
	return (sum - c->offset) * s->unit_examples;
}

/* Returns a number: all smaller global numbers were fresh on some rank before
 * `step`. */
static uint64_t consumed(
	const struct schedule *s, const struct schedule_cursor *c)
{
	uint64_t units = units_before(s, c->tick, c->offset);
	bool whole_only = s->unit_examples > 1 && s->c.drop_last;
	uint64_t each = min_u64(units * s->unit_examples, s->fresh);

	/* Ranks do not differ before the tick `units_common`. A rank that has a
	 * unit in that tick serves it in the first slot of the tick. So after
	 * that slot, all ranks have served all their examples. */
	if (s->c.share != SCHEDULE_EQUAL && !whole_only &&
		(c->tick > s->units_common ||
			(c->tick == s->units_common && c->offset)))
		return s->total;
	return min_u64(s->base + each * s->c.world, s->total);
}

static int restore_elsewhere(struct schedule *s,
	const struct schedule_config *config, const struct saved *v,
	struct schedule_restored *restored, struct error *err)
{
	struct schedule_cursor first, last;
	struct schedule old, other;
	uint64_t more;

	/* Look at the first and the last rank, because the first may have one
	 * example more. */
	if (revive(&old, v, 0, &first) < 0 ||
		revive(&other, v, v->c.world - 1, &last) < 0)
		return error_set(err, -EBADMSG, "not a saved state");
	more = (old.total - old.base) % v->c.world;
	restored->echoes_dropped = more * owed(&old, &first) +
		(v->c.world - more) * owed(&other, &last);
	return schedule_begin(s, config, v->segment[v->segments - 1].echo,
		consumed(&old, &first), v->step, err);
}

/*
 * Compare the run with a run of another length. Returns 1 if both
 * runs have served the same until the saved step. This is so before the last
 * fresh example of either run, if both spread echoes over the same number of
 * ticks. Returns 0 if they differ: the new run then continues after the fresh
 * examples that were served, as with another number of ranks. Returns -EINVAL
 * if the new run would have ended before the saved step. All ranks get the same
 * result, because they do not differ before the tick `units_common`, and rank 0
 * has the most examples.
 */
static int same_so_far(const struct saved *v,
	const struct schedule_config *config, struct error *err)
{
	struct schedule_cursor before, after;
	struct saved other = *v;
	struct schedule old, now;

	other.c.epochs = config->epochs;
	other.c.epoch_examples = config->epoch_examples;
	if (revive(&old, v, 0, &before) < 0)
		return error_set(err, -EBADMSG, "not a saved state");
	if (consumed(&old, &before) > run_examples(config))
		return error_set(err, -EINVAL,
			"saved after the end of a run of %" PRIu64 " epochs",
			config->epochs);
	return revive(&now, &other, 0, &after) == 0 &&
		old.spread == now.spread && before.step == v->step &&
		after.step == v->step && before.tick == after.tick &&
		before.offset == after.offset &&
		before.tick + (before.offset > 0) <=
		min_u64(old.units_common, now.units_common);
}

int schedule_restore(struct schedule *s, const struct schedule_config *config,
	const uint8_t *state, size_t size, struct schedule_restored *restored,
	struct error *err)
{
	struct schedule_cursor c;
	struct schedule now;
	struct saved v;
	int r, same = 1;

	if (read_state(state, size, &v) < 0)
		return error_set(err, -EBADMSG, "not a saved state");
	r = schedule_init(&now, config, err);
	if (r == 0 && v.c.open_end && now.c.open_end)
		/* If the source of the saved run has ended, this is the number
		 * of its examples; otherwise 0. */
		now.c.examples = now.c.epoch_examples = v.c.examples;
	if (r == 0)
		r = compare_configs(&v.c, &now.c, err);
	if (r == 0 && v.c.open_end && v.c.world != now.c.world)
		r = error_set(err, -EINVAL, "saved with world %u, not %u",
			v.c.world, now.c.world);
	if (r < 0)
		return r;
	*restored = (struct schedule_restored){.step = v.step};
	if (now.c.buckets &&
		buckets_group(now.c.buckets) != (uint64_t)v.c.batch * v.c.world)
		return error_set(err, -EINVAL,
			"saved with batch %u and world %u: with bucket, batch "
			"times world must stay the same",
			v.c.batch, v.c.world);
	if (v.choice != choice_hash(&now.c))
		return error_set(err, -EINVAL,
			"saved with another subset, mix or bucket, or with "
			"other epoch_examples for the stages of a mix");
	v.c.subset = now.c.subset;
	v.c.subset_seed = now.c.subset_seed;
	v.c.mix = now.c.mix;
	v.c.buckets = now.c.buckets;
	if (run_examples(&now.c) != run_examples(&v.c))
		same = same_so_far(&v, &now.c, err);
	if (same < 0)
		return same;
	if (same && now.c.world == v.c.world) {
		v.c.epochs = now.c.epochs;
		v.c.epoch_examples = now.c.epoch_examples;
	}
	if (now.c.world != v.c.world || !same)
		return restore_elsewhere(s, &now.c, &v, restored, err);
	if (revive(s, &v, now.c.rank, &c) < 0)
		return error_set(err, -EBADMSG, "not a saved state");
	restored->step = c.step;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The arithmetic of segments and ticks, for the files of the schedule. lane.c
 * explains the words. Pure functions, any thread. */
#ifndef SCHEDULE_LANE_IMPL_H
#define SCHEDULE_LANE_IMPL_H

#include "common/schedule/schedule.h"

/* Maximum number of slots in a tick: at most two segments are alive, and each
 * has one slot for each lane. */
#define TICK_SLOTS_MAX (2 * SCHEDULE_ECHO_MAX)

/* A slot before its permutation: lane `echo` of a segment has come to unit v.
 */
struct lane_slot {
	const struct schedule_segment *seg;
	uint64_t v; /* counted from the start of the segment */
	uint32_t echo;
};

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* Returns the number of examples in a pass. */
static inline uint64_t pass_examples(const struct schedule_config *c)
{
	return c->subset ? c->subset : c->examples;
}

/* Returns the number of examples of a whole run, over all ranks. */
static inline uint64_t run_examples(const struct schedule_config *c)
{
	return c->epochs ? c->epochs * c->epoch_examples : SCHEDULE_GLOBAL_MAX;
}

/* Reduce a factor to lowest terms. Returns 0, or -EINVAL for an invalid factor.
 */
int echo_reduce(struct schedule_echo *echo);

bool echo_above(struct schedule_echo a, struct schedule_echo b);

/* Like schedule_init(), for a schedule that begins in the middle of a run. */
int schedule_begin(struct schedule *s, const struct schedule_config *config,
	struct schedule_echo echo, uint64_t base, uint64_t step_base,
	struct error *err);

/* May a change of the factor begin at this unit? */
bool segment_fits(const struct schedule *s, uint64_t start);

/* Compute the members of a segment that follow from its start, slot and factor.
 */
void segment_init(const struct schedule *s, struct schedule_segment *seg,
	uint64_t start, uint64_t slot, struct schedule_echo echo);

/* Returns the number of ticks between the fresh serving of a unit and its
 * serving in lane k. */
uint64_t segment_delay(const struct schedule *s,
	const struct schedule_segment *seg, uint32_t k);

/* Returns the minimum number of ticks between two lanes. */
uint64_t segment_gap(
	const struct schedule *s, const struct schedule_segment *seg);

/* Returns the number of extra units among the first v units: those with one
 * more serving than the others. */
uint64_t segment_extras(const struct schedule_segment *seg, uint64_t v);

/* Returns the number of servings of unit v. */
uint32_t segment_servings(const struct schedule_segment *seg, uint64_t v);

/* Returns the number of slots in the first `ticks` ticks of a segment of n
 * units. */
uint64_t segment_slots(const struct schedule *s,
	const struct schedule_segment *seg, uint64_t n, uint64_t ticks);

/* Returns the number of units in segment i. */
uint64_t segment_units(const struct schedule *s, uint32_t i);

/* Returns the index of the segment of unit u. Lane 0 of this segment serves u
 * at tick u. */
uint32_t segment_at(const struct schedule *s, uint64_t u);

/* Returns the unit that lane k serves at its place v, counted from the
 * segment's start. */
uint64_t lane_unit(const struct schedule *s, const struct schedule_segment *seg,
	uint32_t k, uint64_t v);

/* Returns the place of unit v in lane k: the inverse of lane_unit(). */
uint64_t lane_place(const struct schedule *s,
	const struct schedule_segment *seg, uint32_t k, uint64_t v);

/* Write the slots of tick u in order. Returns their number. */
uint32_t tick_slots(const struct schedule *s, uint64_t u,
	struct lane_slot slots[TICK_SLOTS_MAX]);

/* Returns the first tick after the run. */
uint64_t ticks_end(const struct schedule *s);

/* Can the slots of tick u be computed? They cannot if its segment was dropped.
 */
bool tick_known(const struct schedule *s, uint64_t u);

/* Returns the number of slots before tick u, for which tick_known() must be
 * true. */
uint64_t slots_before(const struct schedule *s, uint64_t u);

/* Find the tick that has slot x, and the index of the slot in that tick. The
 * slot after the last one gives the end of the run. Returns 0; or -ERANGE for
 * later slots, and for slots of segments that were dropped. */
int slot_find(
	const struct schedule *s, uint64_t x, uint64_t *tick, uint32_t *offset);

/* Returns the number of units that have been decoded before slot `offset` of a
 * tick. If `offset` is after the slot of the tick's own unit, that unit is
 * included. */
uint64_t units_before(const struct schedule *s, uint64_t tick, uint32_t offset);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Changes the factor of an echo stage, either by measurements
 * (stage_meter_impl.h) or by a log. Both are consulted when a batch of servings
 * is complete, at the same step of the schedule, so that a log repeats the
 * changes exactly. The steps in a log are counted over all epochs. An epoch
 * begins with the factor of the last change, even if that change had not taken
 * effect yet.
 */
#include "loader/api/echo_stage_impl.h"

#include <errno.h>
#include <inttypes.h>

int stage_take_log(
	struct refrain_echo *e, const char *echo_log, struct error *err)
{
	int rc;

	e->began = e->made;
	e->base = e->s.measures ? e->made : 0;
	if (!e->s.changes || e->s.measures)
		return 0;
	rc = echo_log_parse(&e->log, echo_log, err);
	if (rc == 0 && e->log.count < e->made)
		rc = error_set(err, -ESTALE,
			"the state was saved after %" PRIu64
			" changes of the echo factor, but echo_log has %u",
			e->made, e->log.count);
	return rc;
}

/* Returns the first example whose number of servings is not fixed yet. */
static uint64_t fresh_given(const struct refrain_echo *e)
{
	return schedule_fresh_before(&e->schedule, e->at.step);
}

/* Would a change that begins here leave too few examples for the new factor?
 * Returns false if the length of the source is not known. */
static bool is_near_end(const struct refrain_echo *e, uint64_t given)
{
	uint64_t window = schedule_spread(&e->schedule) + e->s.c.batch;

	return schedule_has_end(&e->schedule) ||
		(e->expected && given + window >= e->expected);
}

static int stage_follow(struct refrain_echo *e)
{
	uint64_t given = fresh_given(e), step;

	if (is_near_end(e, given) || echo_log_reserve(&e->log) < 0)
		return 0;
	if (auto_change(&e->meter.echo, &e->schedule, given, &step) <= 0)
		return 0;
	e->newest = e->meter.echo.asked;
	echo_log_add(&e->log, e->steps_before + step, e->newest);
	e->made++;
	return 0;
}

static int stale(const struct refrain_echo *e, uint64_t step, struct error *err)
{
	return error_set(err, -ESTALE,
		"echo_log line %" PRIu64
		" belongs to another configuration: no change is possible at "
		"step %" PRIu64,
		e->made + 1, step);
}

/* Get the step at which stage_follow() would make a change now. Returns -ERANGE
 * at the end of the epoch. */
static int step_of_change(const struct refrain_echo *e, uint64_t *step)
{
	struct schedule_slot slot;
	int rc = schedule_fresh(&e->schedule, fresh_given(e), &slot, step);

	*step += 1;
	return schedule_has_end(&e->schedule) ? -ERANGE : rc;
}

static int stage_replay(struct refrain_echo *e, struct error *err)
{
	const struct echo_change *line;
	uint64_t step;

	if (e->made >= e->log.count || step_of_change(e, &step) < 0)
		return 0;
	line = &e->log.lines[e->made];
	if (line->step > e->steps_before + step)
		return 0;
	if (line->step < e->steps_before + step ||
		schedule_change(&e->schedule, step, line->echo) < 0)
		return stale(e, line->step, err);
	e->newest = line->echo;
	e->made++;
	return 0;
}

int stage_step(struct refrain_echo *e, struct error *err)
{
	if (e->s.measures)
		return stage_follow(e);
	return e->s.changes ? stage_replay(e, err) : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Changes the echo factor during a run, by measurements (loader/engine/auto.h)
 * or by a log. Called before each run of the planner, with the turn's lock
 * held. A change affects only examples that are not planned yet. All changes
 * are logged, and another run with that log produces the same stream.
 */
#include "loader/engine/echo_factor_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/lock.h"
#include "loader/engine/echo_log.h"

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

struct echoes {
	const struct engine_parts *parts; /* set once */
	/* number of changes that were made before this handle was opened */
	uint64_t before;
	struct auto_echo measured; /* used if settings.measures */
	bool due;   /* a step was returned since the last attempt */
	bool ended; /* this run makes no more changes */
	/* The changes of the run, from number `base` on. If a log is replayed,
	 * it has all changes from the beginning; otherwise it has those made so
	 * far. */
	struct echo_log log;
	uint64_t base;
	uint64_t made; /* changes made, including those before this handle */
};

static void changed(struct echoes *e)
{
	e->made++;
	planner_look_again(e->parts->planner);
}

/* -- Changes by measurements ----------------------------------------------- */

void echo_returned(struct echoes *e, bool full)
{
	struct meter_view view;
	const struct sums *now = &view.now;
	struct auto_sums sums;

	ASSERT_TURN(e->parts->turn);
	if (!e->parts->s->measures)
		return;
	meter_view(e->parts->meter, &view);
	sums = (struct auto_sums){
		.steps = meter_stats(e->parts->meter)->steps,
		.fresh = meter_stats(e->parts->meter)->fresh,
		.full_ns = now->full_ns,
		.full_reads = now->full_reads,
		.long_ns = now->long_ns,
		.long_reads = now->long_reads,
		.bursts = now->bursts,
		.in_burst = full,
		.read_ns = now->reading_ns,
		.reads = now->reads,
		.decode_ns = now->decode_ns,
		.decodes = now->decoded,
		.augment_ns = now->augment_ns,
		.trainer_ns = now->trainer_ns,
		.wait_ns = now->wait_ns,
		.planned = help_plans(e->parts->help),
	};
	if (sums.planned)
		help_rates_get(e->parts->help, &sums.rates, &sums.in_burst);
	auto_step(&e->measured, &sums);
	e->due = true;
}

static void follow(struct echoes *e)
{
	uint64_t step;
	int rc;

	if (!e->due || e->ended)
		return;
	e->due = false;
	rc = echo_log_reserve(&e->log);
	if (rc == 0)
		rc = auto_change(&e->measured, e->parts->schedule,
			planner_planned_fresh(e->parts->planner), &step);
	if (rc < 0)
		e->ended = true; /* the factor no longer changes */
	if (rc <= 0)
		return;
	echo_log_add(&e->log, step, e->measured.asked);
	changed(e);
}

/* Returns how many fresh examples a run must have so that its factor can
 * change. The first change is possible after one spread of fresh examples, when
 * three eighths of a spread were measured. A change is useful only if another
 * spread follows it. */
static uint64_t needs_fresh(const struct echoes *e)
{
	const struct schedule *s = e->parts->schedule;
	uint64_t spread = schedule_spread(s);

	return 2 * spread +
		((uint64_t)e->parts->c->batches_ahead + 2) * e->parts->c->batch;
}

const char *echo_reason(const struct echoes *e, uint64_t *needs)
{
	struct auto_part m;

	ASSERT_TURN(e->parts->turn);
	*needs = 0;
	if (!e->parts->s->changes)
		return "";
	if (!e->parts->s->measures)
		return "it changes at the steps in echo_log";
	*needs = needs_fresh(e);
	if (e->made > 0)
		return "it follows r";
	if (e->ended || schedule_fresh_count(e->parts->schedule) < *needs)
		return "the run is too short for a change";
	if (!auto_measured(&e->measured, &m))
		return "not enough has been measured yet";
	if (m.up_ns <= m.down_ns * AUTO_R_BEGIN)
		return "the trainer is slower than the loader: r is at "
		       "most " TEXT_OF(AUTO_R_BEGIN);
	return "a change takes effect after the first window of examples";
}

/* -- Changes by a log ------------------------------------------------------ */

/* Returns the first fresh number with the new factor. */
static uint64_t begins(const struct schedule *s, const struct echo_change *c)
{
	uint64_t asked = schedule_fresh_before(s, c->step);
	uint64_t due = schedule_change_begins(s) + schedule_spread(s);

	return asked > due ? asked : due;
}

/* Make the next change of the log, as soon as the previous change has begun. So
 * at most one change is pending. */
static void replay(struct echoes *e)
{

	while (e->made < e->log.count &&
		schedule_change_begins(e->parts->schedule) <=
			planner_planned_fresh(e->parts->planner)) {
		const struct echo_change *c = &e->log.lines[e->made];
		int rc = -ESTALE;

		if (begins(e->parts->schedule, c) >=
			planner_planned_fresh(e->parts->planner))
			rc = schedule_change(
				e->parts->schedule, c->step, c->echo);
		if (rc < 0) {
			(void)error_set(outcome_message(e->parts->outcome),
				-ESTALE,
				"echo_log line %" PRIu64 " belongs to another "
				"configuration: no change is possible at step "
				"%" PRIu64,
				e->made + 1, c->step);
			(void)outcome_stop(e->parts->outcome, -ESTALE);
			return;
		}
		changed(e);
	}
}

void echo_plan(struct echoes *e)
{
	ASSERT_TURN(e->parts->turn);
	if (e->parts->s->measures)
		follow(e);
	else if (e->parts->s->changes)
		replay(e);
}

/* -- Life ------------------------------------------------------------------ */

int echo_new(struct echoes **out, const struct engine_parts *parts,
	uint64_t before, struct error *err)
{
	const struct schedule *s = parts->schedule;
	struct echoes *e = calloc(1, sizeof(*e));
	int rc;

	*out = e;
	if (!e)
		return error_set(err, -ENOMEM, "no memory for the echoes");
	e->parts = parts;
	e->made = e->before = before;
	if (e->parts->s->measures) {
		e->base = e->before;
		auto_init(&e->measured, e->parts->c->batch,
			e->parts->c->threads, schedule_spread(s),
			e->parts->s->echo_max, schedule_echo_at(s, UINT64_MAX));
		return 0;
	}
	if (!e->parts->s->changes)
		return 0;
	rc = echo_log_parse(&e->log, e->parts->c->echo_log, err);
	if (rc == 0 && e->log.count < e->before)
		rc = error_set(err, -ESTALE,
			"the state was saved after %" PRIu64
			" changes of the echo factor, but echo_log has %u",
			e->before, e->log.count);
	return rc;
}

void echo_free(struct echoes *e)
{
	if (e)
		echo_log_free(&e->log);
	free(e);
}

/* -- The log --------------------------------------------------------------- */

int echo_print(const struct echoes *e, char *buf, size_t size)
{
	ASSERT_TURN(e->parts->turn);
	return echo_log_print(
		&e->log, e->before - e->base, e->made - e->base, buf, size);
}

uint64_t echo_changes(const struct echoes *e)
{
	ASSERT_TURN(e->parts->turn);
	return e->made;
}

bool echo_measured(const struct echoes *e, struct auto_part *out)
{
	ASSERT_TURN(e->parts->turn);
	return auto_measured(&e->measured, out);
}

/* SPDX-License-Identifier: MIT */
/*
 * Delivers batches: waits for the next one, lends it, and updates the
 * descriptor that polls readable if a call would not wait. Called by the user's
 * threads; takes the turn's lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "loader/engine/engine_impl.h"

/* The share of damaged examples is checked after this many examples, or after
 * an epoch if the epoch has fewer. */
#define DAMAGE_EXAMPLES 1000

static bool all_lent(const struct engine *engine)
{
	return lender_all_lent(engine->parts.lender);
}

static bool at_end(const struct engine *engine)
{
	return planner_at_end(engine->parts.planner) &&
		!steps_oldest(engine->parts.steps);
}

bool engine_is_ready(const struct engine *engine)
{
	return outcome_closing(engine->parts.outcome) ||
		outcome_stopped(engine->parts.outcome) ||
		steps_finished(engine->parts.steps) || at_end(engine) ||
		all_lent(engine);
}

/* Stop the run, because a batch cannot be made. */
static int stop(struct engine *engine, const struct step *st)
{
	struct refrain_failure failure = {
		.error = st->error,
		.stage = st->error_stage,
		.index = st->error_index,
		.step = st->number,
	};

	outcome_fail(engine->parts.outcome, &failure);
	(void)error_set(outcome_message(engine->parts.outcome), st->error,
		"step %" PRIu64 ": %s", st->number, st->why ? st->why : "%m");
	return outcome_stop(engine->parts.outcome, st->error);
}

/*
 * Does this batch raise the share of damaged examples above the limit? Examples
 * are counted batch by batch, so that the result does not depend on the number
 * of threads. The check begins only when there were enough examples.
 */
static bool is_too_damaged(const struct engine *engine, const struct step *st)
{
	uint64_t own = dataset_count(engine->parts.dataset) / engine->s.c.world;
	uint64_t least = own < DAMAGE_EXAMPLES ? own : DAMAGE_EXAMPLES;
	uint64_t fresh = meter_stats(engine->parts.meter)->fresh + st->fresh;
	uint64_t damaged =
		meter_damaged_fresh(engine->parts.meter) + st->damaged;

	return engine->s.c.policy != REFRAIN_FAIL && fresh >= least &&
		(double)damaged > engine->s.c.max_damage * (double)fresh;
}

static int stop_too_damaged(struct engine *engine, const struct step *st)
{
	(void)error_set(outcome_message(engine->parts.outcome), -EBADMSG,
		"step %" PRIu64 ": %" PRIu64 " of %" PRIu64
		" examples are damaged, more than max_damage allows (%g %%); "
		"the last: %s",
		st->number,
		meter_damaged_fresh(engine->parts.meter) + st->damaged,
		meter_stats(engine->parts.meter)->fresh + st->fresh,
		100 * engine->s.c.max_damage,
		outcome_damage(engine->parts.outcome)->msg);
	return outcome_stop(engine->parts.outcome, -EBADMSG);
}

/* Check for the next batch. Returns 1 if there is one, 0 at the end of the run,
 * -errno, or -EAGAIN if the call would have to wait. */
static int look(struct engine *engine)
{
	struct step *st = steps_finished(engine->parts.steps);

	if (outcome_closing(engine->parts.outcome))
		return error_set(outcome_message(engine->parts.outcome),
			-ESHUTDOWN, "the loader is closed");
	if (outcome_stopped(engine->parts.outcome))
		return outcome_stopped(engine->parts.outcome);
	if (st && st->error)
		return stop(engine, st);
	if (st)
		return is_too_damaged(engine, st) ? stop_too_damaged(engine, st)
						  : 1;
	if (at_end(engine))
		return 0;
	if (all_lent(engine))
		return error_set(outcome_message(engine->parts.outcome), -EBUSY,
			"all %u batches are lent; release one",
			lender_count(engine->parts.lender));
	return -EAGAIN;
}

static int timed_out(struct engine *engine, uint64_t called_ns)
{
	watchdog_describe(engine->parts.steps, engine->parts.outcome,
		engine->waited_ns + clock_now_ns() - called_ns);
	return -ETIMEDOUT;
}

static int wait_for_step(
	struct engine *engine, int timeout_ms, uint64_t called_ns)
{
	uint64_t until_ns = called_ns + (uint64_t)timeout_ms * NS_PER_MS;
	int rc;

	while ((rc = look(engine)) == -EAGAIN) {
		if (timeout_ms < 0)
			turn_wait(&engine->turn, TURN_CALLERS);
		else if (clock_now_ns() >= until_ns)
			return timed_out(engine, called_ns);
		else
			(void)turn_wait_until(
				&engine->turn, TURN_CALLERS, until_ns);
	}
	return rc;
}

/* Is this the step whose duplicates cannot be avoided? Steps with duplicates
 * are rare, so this need not be fast. */
static bool is_exception(const struct engine *engine, const struct step *st)
{
	struct schedule_facts facts;

	if (!st->duplicates)
		return false;
	schedule_facts(&engine->schedule, &facts);
	return facts.apart && st->number == facts.exception_step;
}

static void count_returned(
	struct engine *engine, const struct step *st, uint64_t called_ns)
{
	struct meter_step counts = {
		.slots = st->slots,
		.count = st->count,
		.fresh = st->fresh,
		.damaged = st->damaged,
		.epochs_ended = st->epochs_ended,
		.substituted = st->substituted,
		.zero_filled = st->zero_filled,
		.duplicates = st->duplicates,
		.exception = is_exception(engine, st),
		.lag_sum = st->lag_sum,
		.lag_min = st->lag_min,
		.lags = st->lags,
		.bytes = engine->s.sample_bytes * engine->s.c.batch,
		.called_ns = called_ns,
		.now_ns = clock_now_ns(),
	};

	engine_tick(engine);
	meter_returned(engine->parts.meter, &counts);
	echo_returned(
		engine->parts.echoes, reader_is_full(engine->parts.reader));
}

static struct lent_batch *hand_over(struct engine *engine, uint64_t called_ns)
{
	struct step *st = steps_oldest(engine->parts.steps);
	struct lent_batch *lent = &st->slab->lent_batch;
	struct refrain_batch *b = &lent->batch;

	b->count = st->count;
	b->step = st->number;
	b->epoch = st->epoch;
	b->fresh = st->fresh;
	b->ends_epoch = st->epochs_ended > 0;
	b->ended_epoch = st->epochs_ended ? st->ended_epoch : UINT64_MAX;
	slab_lend(st->slab);
	st->slab = NULL;
	count_returned(engine, st, called_ns);
	steps_return(engine->parts.steps);
	help_moved(engine->parts.help);
	return lent;
}

/* End a call. This must be its last action, because the loader may be freed
 * after it. */
static void leave(struct engine *engine)
{
	TURN_LOOK_SCOPE(&engine->turn);
	engine->callers--;
	if (outcome_closing(engine->parts.outcome))
		turn_wake_closer(&engine->turn);
}

int engine_next(struct batch_source *source, struct lent_batch **out,
	int timeout_ms, uint64_t since_ns)
{
	struct engine *engine = engine_of(source);
	uint64_t called_ns = since_ns ? since_ns : clock_now_ns();
	int rc;

	turn_lock(&engine->turn);
	engine->callers++;
	outcome_begin_call(engine->parts.outcome);
	rc = wait_for_step(engine, timeout_ms, called_ns);
	/* Count the time of this call as part of the wait for the batch that
	 * the next call returns. */
	if (rc == -ETIMEDOUT && !since_ns)
		engine->waited_ns += clock_now_ns() - called_ns;
	if (rc == 1)
		*out = hand_over(engine, called_ns - engine->waited_ns);
	if (rc == 1)
		engine->waited_ns = 0;
	turn_unlock(&engine->turn);
	/* nobody else has this batch yet, so this needs no lock */
	if (rc == 1)
		slab_finish(&engine->s, *out);
	leave(engine);
	return rc;
}

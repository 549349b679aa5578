/* SPDX-License-Identifier: MIT */
/*
 * The work at the end of an engine's turns, closing the engine, and queries.
 * engine_impl.h describes how the parts of an engine work together.
 */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"
#include "loader/engine/engine_impl.h"
#include "loader/engine/engine_mix.h"
#include "loader/engine/pulled_impl.h"

#define READS_END_NS (400 * NS_PER_MS * TIME_LIMIT_FACTOR)
#define CLOSE_NS (900 * NS_PER_MS * TIME_LIMIT_FACTOR)

/* -- Turns ----------------------------------------------------------------- */

static void begin_turn(void *arg)
{
	engine_tick(arg);
}

/*
 * Start everything that has become possible by changes made under the lock:
 * choose reads, and mark the threads that have work to do. No other function
 * does this.
 */
static void *end_turn(void *arg)
{
	struct engine *engine = OBJECT(engine, arg);
	struct read_op *reads;
	bool ready;

	reader_pump(engine->parts.reader);
	reads = reader_take(engine->parts.reader);
	/* If a read that hung ends after closing, the pool may have been freed
	 * already. */
	if (!outcome_closing(engine->parts.outcome) &&
		!budget_is_taken(engine->parts.budget))
		turn_mark_workers(&engine->turn,
			(uint64_t)steps_ready(engine->parts.steps) +
				planner_wants(engine->parts.planner) +
				pulled_is_late(&engine->parts) +
				budget_feeds(engine->parts.budget));
	if (help_take_stirred(engine->parts.help))
		turn_mark(&engine->turn, TURN_HELP);
	ready = engine_is_ready(engine);
	turn_ready(&engine->turn, ready);
	if (ready)
		turn_mark(&engine->turn, TURN_CALLERS);
	return reads;
}

static void start_reads(void *arg, void *chosen)
{
	struct engine *engine = OBJECT(engine, arg);

	if (!reader_begin(engine->parts.reader, chosen) ||
		!outcome_closing_now(engine->parts.outcome))
		return;
	turn_lock(&engine->turn);
	turn_mark(&engine->turn, TURN_CLOSER);
	turn_unlock(&engine->turn);
}

const struct turn_ops engine_turns = {begin_turn, end_turn, start_reads};

/* -- Closing --------------------------------------------------------------- */

static void say_closing(struct engine *engine)
{
	turn_lock(&engine->turn);
	outcome_close(engine->parts.outcome);
	for (int who = 0; who < TURN_WHO; who++)
		turn_mark(&engine->turn, who);
	turn_mark_workers(&engine->turn, UINT32_MAX);
	turn_unlock(&engine->turn);
}

/* Wait until all calls have returned. Returns false if a call has not returned
 * when the time is over. */
static bool callers_left(struct engine *engine, uint64_t until_ns)
{
	TURN_LOOK_SCOPE(&engine->turn);

	while (engine->callers > 0)
		if (!turn_wait_until(&engine->turn, TURN_CLOSER, until_ns))
			return false;
	return true;
}

/* Free all memory, except what a hanging read may still write to. */
static void abandon(struct engine *engine)
{
	lender_leave(engine->parts.lender);
	TURN_LOOK_SCOPE(&engine->turn);
	workers_free(engine->parts.workers);
	budget_clear(engine->parts.budget);
	originals_free(engine->parts.pool);
	memory_trim(&engine->memory);
}

static void engine_free(struct engine *engine)
{
	reader_free(engine->parts.reader);
	help_free(engine->parts.help);
	puller_free(engine->parts.puller);
	workers_free(engine->parts.workers);
	echo_free(engine->parts.echoes);
	planner_free(engine->parts.planner);
	budget_free(engine->parts.budget);
	originals_free(engine->parts.pool);
	steps_free(engine->parts.steps);
	meter_free(engine->parts.meter);
	outcome_free(engine->parts.outcome);
	memory_trim(&engine->memory);
	if (engine->parts.lender)
		lender_leave(engine->parts.lender);
	mixture_free(engine->parts.mixture);
	dataset_close(engine->parts.dataset);
	if (engine->turns)
		turn_release(&engine->turn);
	MAGIC_END(engine);
	free(engine);
}

int engine_close(struct batch_source *source)
{
	struct engine *engine = engine_of(source);
	uint64_t until_ns = clock_now_ns() + CLOSE_NS;
	uint32_t left;
	bool ended;

	if (!engine->complete) { /* no thread was started */
		engine_free(engine);
		return 0;
	}
	say_closing(engine);
	puller_stop(engine->parts.puller);
	left = reader_stop(engine->parts.reader, READS_END_NS);
	ended = workers_stop(engine->parts.workers, until_ns) &&
		callers_left(engine, until_ns);
	ended = help_stop(engine->parts.help, until_ns) && ended;
	if (ended && !left)
		engine_free(engine);
	else if (ended)
		abandon(engine);
	return (int)left + (ended ? 0 : 1);
}

/* -- The operations of a batch source -------------------------------------- */

static int engine_source_next(
	struct batch_source *source, struct lent_batch **out, int timeout_ms)
{
	return engine_next(source, out, timeout_ms, 0);
}

static int engine_fd(struct batch_source *source)
{
	return turn_fd(&engine_of(source)->turn);
}

static void engine_message(struct batch_source *source, struct error *out)
{
	struct engine *engine = engine_of(source);

	TURN_LOOK_SCOPE(&engine->turn);
	*out = *outcome_why(engine->parts.outcome);
}

static const struct settings *engine_settings(const struct batch_source *source)
{
	return &engine_of(source)->s;
}

static const struct dataset *engine_dataset(const struct batch_source *source)
{
	return engine_of(source)->parts.dataset;
}

static uint64_t engine_steps_left(struct batch_source *source)
{
	struct engine *engine = engine_of(source);

	TURN_LOOK_SCOPE(&engine->turn);
	return planner_steps(engine->parts.planner) -
		steps_first(engine->parts.steps);
}

static uint64_t engine_step(struct batch_source *source)
{
	struct engine *engine = engine_of(source);

	TURN_LOOK_SCOPE(&engine->turn);
	return steps_first(engine->parts.steps);
}

static uint64_t engine_epoch_end(struct batch_source *source, uint64_t epoch)
{
	struct engine *engine = engine_of(source);

	TURN_LOOK_SCOPE(&engine->turn);
	return schedule_epoch_end_all(&engine->schedule, epoch);
}

static int engine_fresh(
	struct batch_source *source, uint64_t f, uint64_t *index)
{
	struct engine *engine = engine_of(source);
	struct schedule_slot slot;
	uint64_t need_by;
	int rc;

	TURN_LOOK_SCOPE(&engine->turn);
	rc = schedule_fresh(&engine->schedule, f, &slot, &need_by);
	if (rc == 0)
		*index = slot.index;
	return rc;
}

static void engine_failure(
	struct batch_source *source, struct refrain_failure *out)
{
	struct engine *engine = engine_of(source);

	TURN_LOOK_SCOPE(&engine->turn);
	*out = *outcome_failure(engine->parts.outcome);
}

static int engine_echo_log(struct batch_source *source, char *buf, size_t size)
{
	struct engine *engine = engine_of(source);

	TURN_LOOK_SCOPE(&engine->turn);
	return echo_print(engine->parts.echoes, buf, size);
}

const struct loader_ops engine_ops = {
	.next = engine_source_next,
	.fd = engine_fd,
	.close = engine_close,
	.message = engine_message,
	.settings = engine_settings,
	.dataset = engine_dataset,
	.steps_left = engine_steps_left,
	.step = engine_step,
	.epoch_end = engine_epoch_end,
	.fresh = engine_fresh,
	.failure = engine_failure,
	.stats = engine_stats,
	.save = engine_save,
	.save_at = engine_save_at,
	.echo_log = engine_echo_log,
};

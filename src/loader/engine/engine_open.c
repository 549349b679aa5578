/* SPDX-License-Identifier: MIT */
/*
 * Opens an engine: creates its parts in the order in which they depend on each
 * other, then starts their threads. Runs on the caller's thread; the parts do
 * not need the lock yet.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/magic.h"
#include "loader/engine/engine_impl.h"
#include "loader/engine/engine_mix.h"
#include "loader/engine/make_fields_impl.h"
#include "loader/engine/pulled_impl.h"

/* The minimum memory for reading and decoding one example, and for one worker,
 * in bytes. */
#define WORKING_BYTES ((uint64_t)256 << 10)
#define WORKER_BYTES ((uint64_t)64 << 10)
#define ORIGINALS_SPARE 64

/* -- Sizes and limits ------------------------------------------------------ */

/* Returns the number of slabs: those that are filled ahead, and one that is
 * lent. */
static uint32_t slab_count(const struct settings *s)
{
	return s->c.batches_ahead + 1;
}

static uint64_t original_count(
	const struct engine *engine, uint64_t outstanding_max)
{
	const struct refrain_config *c = &engine->s.c;

	return outstanding_max + ((uint64_t)c->batches_ahead + 2) * c->batch +
		engine->s.ahead_max + ORIGINALS_SPARE;
}

static uint64_t tables_bytes(const struct engine *engine, uint64_t originals)
{
	const struct refrain_config *c = &engine->s.c;

	return sizeof(*engine) + dataset_memory_bytes(engine->parts.dataset) +
		mixture_memory_bytes(engine->parts.mixture) +
		originals_bytes(
			originals, dataset_parts(engine->parts.dataset)) +
		steps_bytes(c->batches_ahead, c->batch) +
		c->batch * sizeof(struct example) +
		reader_bytes(c->reads_ahead);
}

static int check_memory(
	struct engine *engine, uint64_t originals, struct error *err)
{
	uint64_t fixed = lender_bytes(&engine->s, slab_count(&engine->s)) +
		tables_bytes(engine, originals);
	uint64_t least =
		fixed + WORKING_BYTES + engine->s.c.threads * WORKER_BYTES;

	engine->memory.limit = engine->s.c.memory_bytes;
	if (least > engine->s.c.memory_bytes && engine->s.memory_of)
		return error_set(err, -ENOMEM,
			"memory_bytes is not set, and a quarter of %s is "
			"%" PRIu64 ": %u batches of %" PRIu64
			" bytes and their bookkeeping need %" PRIu64,
			engine->s.memory_of, engine->s.c.memory_bytes,
			slab_count(&engine->s),
			(uint64_t)engine->s.c.batch * engine->s.sample_bytes,
			least);
	if (least > engine->s.c.memory_bytes)
		return error_set(err, -ENOMEM,
			"memory_bytes is %" PRIu64 ": %u batches of %" PRIu64
			" bytes and their bookkeeping need %" PRIu64,
			engine->s.c.memory_bytes, slab_count(&engine->s),
			(uint64_t)engine->s.c.batch * engine->s.sample_bytes,
			least);
	memory_charge_over(&engine->memory, fixed);
	return 0;
}

int engine_open_dataset(
	const struct settings *s, struct dataset **out, struct error *err)
{
	const struct refrain_config *c = &s->c;
	const struct token_windows *tokens = settings_tokens(s);
	const struct array_crops *array = settings_array(s);
	struct dataset_options options = {
		.path = c->dataset,
		.source = tokens || array ? REFRAIN_SOURCE_RAW : c->source,
		.root = c->root,
		.record_bytes = c->record_bytes,
		.label_bytes = c->label_bytes,
		.windows = tokens,
		.arrays = array,
		.any_file = c->decode != NULL,
		.members = *s->members.text ? s->members.text : NULL,
		.annotations = c->annotations,
		.timeout_ns = c->open_timeout_ms < 0
			? 0
			: (uint64_t)c->open_timeout_ms * NS_PER_MS,
	};

	return dataset_open(out, &options, err);
}

/* -- The parts ------------------------------------------------------------- */

static void on_free_slab(void *arg)
{
	struct engine *engine = OBJECT(engine, arg);

	turn_lock(&engine->turn);
	turn_unlock(&engine->turn);
}

static int open_lender(struct engine *engine, const struct slab_place *place,
	struct error *err)
{
	int rc = lender_new(&engine->parts.lender, &engine->s,
		slab_count(&engine->s), place, on_free_slab, engine);

	if (rc == -EINVAL)
		return error_set(err, rc,
			"alloc() returned memory that is not 64-byte aligned");
	if (rc == -ENOSPC)
		return error_set(
			err, rc, "the memory for batches is too small");
	if (rc < 0)
		return error_set(err, -ENOMEM,
			"no memory for %u batches of %" PRIu64 " bytes",
			slab_count(&engine->s),
			(uint64_t)engine->s.c.batch * engine->s.sample_bytes);
	return 0;
}

/* The position at which a run begins, and the sizes of its pool. */
struct start {
	/* The first step, and the number of changes of the echo factor before
	 * it */
	uint64_t step, changes;
	uint64_t outstanding_max, originals;
};

static int open_schedule(
	struct engine *engine, struct start *start, struct error *err)
{
	struct schedule_config config;
	struct schedule_facts facts;
	int rc = mixture_schedule(&engine->s, engine->parts.dataset,
		&engine->parts.mixture, &config, err);

	if (rc < 0)
		return rc;
	rc = state_restore(engine, &config, &start->step, &start->changes, err);
	if (rc < 0)
		return rc;
	schedule_facts(&engine->schedule, &facts);
	start->outstanding_max = facts.window + engine->s.c.batch;
	if (start->outstanding_max > facts.fresh)
		start->outstanding_max = facts.fresh;
	start->originals = original_count(engine, start->outstanding_max);
	meter_set_window(engine->parts.meter,
		schedule_settings(&engine->schedule)->window /
			engine->s.c.batch);
	return 0;
}

static int open_pool(
	struct engine *engine, const struct start *start, struct error *err)
{
	struct engine_parts *parts = &engine->parts;

	if (steps_new(&parts->steps, parts->turn, parts->c->batches_ahead,
		    parts->c->batch) < 0)
		return error_set(err, -ENOMEM, "no memory for the steps");
	steps_begin(parts->steps, start->step);
	if (originals_new(&parts->pool, parts, start->originals) < 0)
		return error_set(err, -ENOMEM, "no memory for the pool");
	if (budget_new(&parts->budget, parts, start->outstanding_max) < 0)
		return error_set(err, -ENOMEM, "no memory for a loader");
	return 0;
}

/* Get the state of the run for mount help. Called in a turn. */
static void say_run(void *arg, struct help_run *out)
{
	struct engine *engine = OBJECT(engine, arg);

	*out = (struct help_run){
		.fresh = meter_stats(engine->parts.meter)->fresh,
		.step = steps_first(engine->parts.steps),
		.read_fresh = planner_read_fresh(engine->parts.planner),
		.step_ns = meter_step_ns(engine->parts.meter),
		.schedule = &engine->schedule,
		.closing = outcome_closing(engine->parts.outcome),
	};
}

/* Open mount help, then make the budget distribute the rest of the memory. */
static void open_help(struct engine *engine, const struct start *start)
{
	struct help_config config = {
		.s = &engine->s,
		.dataset = engine->parts.dataset,
		.turn = &engine->turn,
		.run = say_run,
		.arg = engine,
		.first_fresh =
			schedule_fresh_before(&engine->schedule, start->step),
		.room_bytes = memory_room(&engine->memory),
	};

	engine->parts.help = help_new(&config);
	memory_charge_over(
		&engine->memory, help_memory_bytes(engine->parts.help));
	budget_open(engine->parts.budget);
}

/* -- Opening, in this order ------------------------------------------------ */

/* Create the lock, the memory, and the parts for counters and failures. */
static int open_turns(struct engine *engine, struct error *err)
{
	int rc = turn_init(&engine->turn, &engine_turns, engine);

	engine->turns = true;
	if (rc < 0)
		return error_set(err, rc, "cannot make an eventfd: %m");
	if (outcome_new(&engine->parts.outcome, &engine->turn) < 0 ||
		meter_new(&engine->parts.meter, &engine->turn) < 0)
		return error_set(err, -ENOMEM, "no memory for the counters");
	return 0;
}

static int open_parts(struct engine *engine, const struct slab_place *place,
	struct error *err)
{
	struct engine_parts *parts = &engine->parts;
	struct start start;
	int rc = engine_open_dataset(&engine->s, &parts->dataset, err);

	if (rc == 0)
		rc = fields_check(parts, err);
	if (rc == 0)
		rc = open_turns(engine, err);
	if (rc == 0)
		rc = open_schedule(engine, &start, err);
	if (rc == 0)
		rc = check_memory(engine, start.originals, err);
	if (rc == 0)
		rc = open_lender(engine, place, err);
	if (rc == 0)
		rc = open_pool(engine, &start, err);
	if (rc == 0)
		rc = workers_new(&parts->workers, parts, err);
	if (rc < 0)
		return rc;
	rc = pulled_open(parts, start.step, start.outstanding_max, err);
	if (rc < 0)
		return rc;
	open_help(engine, &start);
	rc = planner_new(&parts->planner, parts, start.step, err);
	if (rc == 0)
		rc = echo_new(&parts->echoes, parts, start.changes, err);
	if (rc < 0)
		return rc;
	if (reader_new(&parts->reader, parts) < 0)
		return error_set(err, -ENOMEM, "no memory for the reads");
	engine->complete = true;
	return 0;
}

/* Start the threads with all signals blocked, so that the program's own threads
 * handle them. */
static int begin_threads(struct engine *engine, struct error *err)
{
	sigset_t all, before;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail */
	rc = reader_start(engine->parts.reader, err);
	if (rc == 0)
		help_start(engine->parts.help,
			reader_ring(engine->parts.reader),
			engine->s.c.reads_ahead);
	if (rc == 0)
		rc = workers_start(engine->parts.workers, err);
	if (rc == 0) {
		rc = puller_start(engine->parts.puller);
		if (rc < 0)
			(void)error_set(err, rc, "cannot start a thread: %m");
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* Clear pointers to the caller's memory, which may be freed after
 * refrain_open(). */
static void forget_callers(struct refrain_config *c)
{
	c->dataset = c->root = NULL;
	c->cpus = NULL;
	c->state = NULL;
	c->echo_log = NULL;
	c->fields = c->annotations = NULL;
	c->service = c->service_dataset = c->service_secret = NULL;
}

int engine_open(struct batch_source **out, const struct refrain_config *config,
	const struct slab_place *place, struct error *err)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int rc;

	if (!engine)
		return error_set(err, -ENOMEM, "no memory for a loader");
	MAGIC_BEGIN(engine, engine);
	engine->source.ops = &engine_ops;
	engine->parts = (struct engine_parts){.s = &engine->s,
		.c = &engine->s.c,
		.turn = &engine->turn,
		.memory = &engine->memory,
		.schedule = &engine->schedule};
	memory_init(&engine->memory, 0);
	rc = settings_init(&engine->s, config, err);
	if (rc == 0)
		rc = open_parts(engine, place, err);
	if (rc == 0)
		rc = begin_threads(engine, err);
	if (rc < 0) {
		/* Nothing can hang yet, so this cannot fail */
		(void)engine_close(&engine->source);
		return rc;
	}
	forget_callers(&engine->s.c);
	*out = &engine->source;
	return 0;
}

int engine_place(const struct refrain_config *config, uint32_t *slabs,
	size_t *bytes, struct error *err)
{
	struct settings s;
	int rc = settings_init(&s, config, err);

	if (rc < 0)
		return rc;
	*slabs = slab_count(&s);
	*bytes = *slabs * slab_bytes(&s);
	return 0;
}

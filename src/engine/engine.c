/* SPDX-License-Identifier: MIT */
/*
 * Opening and closing an engine, the end of its turns, and asking it.
 * engine_impl.h says how the parts work together.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/engine_impl.h"
#include "mount_help/mount_help.h"

#define READS_END_NS (400 * NS_PER_MS)
#define CLOSE_NS (900 * NS_PER_MS)
/* Below that nothing can be read and decoded at a time. */
#define WORKING_BYTES ((uint64_t)256 << 10)
#define WORKER_BYTES ((uint64_t)64 << 10)
#define ENTRIES_SPARE 64

/* -- Opening --------------------------------------------------------------- */

/* Slabs in the making, and one that is lent. */
static uint32_t slab_count(const struct settings *s)
{
	return s->c.batches_ahead + 1;
}

static uint64_t entry_count(const struct engine *engine)
{
	const struct refrain_config *c = &engine->s.c;

	return engine->outstanding_max +
		((uint64_t)c->batches_ahead + 2) * c->batch +
		engine->s.ahead_max + ENTRIES_SPARE;
}

static uint64_t tables_bytes(const struct engine *engine)
{
	const struct refrain_config *c = &engine->s.c;
	uint64_t place = sizeof(struct schedule_slot) + sizeof(struct serving);

	return sizeof(*engine) + dataset_memory_bytes(engine->dataset) +
		entries_bytes(entry_count(engine)) +
		(uint64_t)c->batches_ahead * c->batch * place +
		c->batch * sizeof(struct example) +
		c->reads_ahead * sizeof(struct read_op);
}

static int check_memory(struct engine *engine, struct error *err)
{
	uint64_t fixed = lender_bytes(&engine->s, slab_count(&engine->s)) +
		tables_bytes(engine);
	uint64_t least =
		fixed + WORKING_BYTES + engine->s.c.threads * WORKER_BYTES;

	engine->memory.limit = engine->s.c.memory_bytes;
	if (least > engine->s.c.memory_bytes && engine->s.memory_of)
		return error_set(err, -ENOMEM,
			"memory_bytes is not set, and a quarter of %s is "
			"%" PRIu64 ": %u batches of %" PRIu64
			" bytes and what belongs to them need %" PRIu64,
			engine->s.memory_of, engine->s.c.memory_bytes,
			slab_count(&engine->s),
			(uint64_t)engine->s.c.batch * engine->s.sample_bytes,
			least);
	if (least > engine->s.c.memory_bytes)
		return error_set(err, -ENOMEM,
			"memory_bytes is %" PRIu64 ": %u batches of %" PRIu64
			" bytes and what belongs to them need %" PRIu64,
			engine->s.c.memory_bytes, slab_count(&engine->s),
			(uint64_t)engine->s.c.batch * engine->s.sample_bytes,
			least);
	memory_charge_over(&engine->memory, fixed);
	return 0;
}

static int open_dataset(struct engine *engine, struct error *err)
{
	const struct refrain_config *c = &engine->s.c;
	struct dataset_options options = {
		.path = c->dataset,
		.source = c->source,
		.root = c->root,
		.record_bytes = c->record_bytes,
		.label_bytes = c->label_bytes,
		.any_file = c->decode != NULL,
		.timeout_ns = c->open_timeout_ms < 0
			? 0
			: (uint64_t)c->open_timeout_ms * NS_PER_MS,
	};
	int rc = dataset_open(&engine->dataset, &options, err);

	if (rc == 0)
		engine->examples = dataset_count(engine->dataset);
	return rc;
}

/* -- Turns ----------------------------------------------------------------- */

void engine_tick(struct engine *engine)
{
	bool unread = steps_unfinished(engine->steps) >
		engine->working + steps_ready(engine->steps);
	struct meter_state state = {
		.waiting = unread ? turn_idle(&engine->turn) : 0,
		.full = engine->reader.full,
		.reading = engine->reader.reading > 0,
	};

	meter_tick(engine->meter, &state);
}

static void begin_turn(void *arg)
{
	engine_tick(arg);
}

/*
 * All that can go on because of what was done under the lock: reads are
 * started, and whoever has something to do now is woken. There is no other
 * place for that.
 */
static void *end_turn(void *arg)
{
	struct engine *engine = arg;
	struct read_op *reads;
	bool ready;

	reader_pump(engine);
	reads = reader_take_queued(engine);
	engine->reader.beginning += reads != NULL;
	if (engine->alone)
		turn_mark(&engine->turn, TURN_ALONE);
	else
		turn_mark_workers(&engine->turn,
			(uint64_t)steps_ready(engine->steps) +
				planner_wants(engine));
	if (help_take_stirred(engine->help))
		turn_mark(&engine->turn, TURN_HELP);
	ready = loader_is_ready(engine);
	turn_ready(&engine->turn, ready);
	if (ready)
		turn_mark(&engine->turn, TURN_CALLERS);
	return reads;
}

static void start_reads(void *arg, void *chosen)
{
	struct engine *engine = arg;

	reader_begin(chosen);
	if (--engine->reader.beginning > 0 || !engine->ending)
		return;
	turn_lock(&engine->turn);
	turn_mark(&engine->turn, TURN_CLOSER);
	turn_unlock(&engine->turn);
}

static const struct turn_ops turns = {begin_turn, end_turn, start_reads};

static void on_free_slab(void *arg)
{
	struct engine *engine = arg;

	turn_lock(&engine->turn);
	turn_unlock(&engine->turn);
}

static int open_tables(struct engine *engine, struct error *err)
{
	int rc = check_memory(engine, err);

	if (rc < 0)
		return rc;
	rc = turn_init(&engine->turn, &turns, engine);
	engine->turns = true;
	if (rc < 0)
		return error_set(err, rc, "cannot make an eventfd: %m");
	rc = lender_new(&engine->lender, &engine->s, slab_count(&engine->s),
		engine->place, on_free_slab, engine);
	if (rc == -EINVAL)
		return error_set(err, rc,
			"alloc() returned memory that is not 64-byte aligned");
	if (rc == -ENOSPC)
		return error_set(err, rc, "the place for batches is too small");
	if (rc < 0)
		return error_set(err, -ENOMEM,
			"no memory for %u batches of %" PRIu64 " bytes",
			slab_count(&engine->s),
			(uint64_t)engine->s.c.batch * engine->s.sample_bytes);
	if (entries_new(&engine->entries, entry_count(engine)) < 0)
		return error_set(err, -ENOMEM, "no memory for the pool");
	return 0;
}

/* The state of the run for the mount, as of a turn. */
static void say_run(void *arg, struct help_run *out)
{
	struct engine *engine = arg;

	*out = (struct help_run){
		.fresh = meter_stats(engine->meter)->fresh,
		.step = steps_first(engine->steps),
		.read_fresh = engine->planner.read_fresh,
		.step_ns = meter_step_ns(engine->meter),
		.schedule = &engine->planner.schedule,
		.closing = engine->closing,
	};
}

static void open_help(struct engine *engine)
{
	struct help_config config = {
		.s = &engine->s,
		.dataset = engine->dataset,
		.turn = &engine->turn,
		.run = say_run,
		.arg = engine,
		.first_fresh = engine->planner.planned_fresh,
		.room_bytes = memory_room(&engine->memory),
	};

	engine->help = help_new(&config);
	memory_charge_over(&engine->memory, help_memory_bytes(engine->help));
}

/* Threads of a library take no signals. */
static int open_threads(struct engine *engine, struct error *err)
{
	sigset_t all, before;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail */
	rc = reader_init(engine, err);
	if (rc == 0)
		help_start(engine->help, engine->reader.ring,
			engine->reader.depth);
	if (rc == 0)
		rc = workers_start(engine, err);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int open_parts(struct engine *engine, struct error *err)
{
	int rc = open_dataset(engine, err);

	if (rc == 0 && meter_new(&engine->meter) < 0)
		rc = error_set(err, -ENOMEM, "no memory for the counters");
	if (rc == 0)
		rc = planner_init(engine, err);
	if (rc == 0)
		rc = echo_init(engine, err);
	if (rc == 0)
		rc = open_tables(engine, err);
	if (rc == 0)
		rc = workers_init(engine, err);
	if (rc < 0)
		return rc;
	meter_set_window(engine->meter,
		engine->planner.schedule.c.window / engine->s.c.batch);
	open_help(engine);
	engine->memory_share = memory_room(&engine->memory);
	engine->memory_alone = engine->memory_share + engine->workers_bytes;
	return open_threads(engine, err);
}

/* Clear pointers to the caller's memory. */
static void forget_callers(struct refrain_config *c)
{
	c->dataset = c->root = NULL;
	c->cpus = NULL;
	c->state = NULL;
	c->echo_log = NULL;
}

int engine_open(struct engine **out, const struct refrain_config *config,
	const struct slab_place *place, struct error *err)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int rc;

	if (!engine)
		return error_set(err, -ENOMEM, "no memory for a loader");
	memory_init(&engine->memory, 0);
	engine->place = place;
	rc = settings_init(&engine->s, config, err);
	if (rc == 0)
		rc = open_parts(engine, err);
	if (rc < 0) {
		(void)engine_close(engine); /* nothing can hang yet */
		return rc;
	}
	engine->place = NULL;
	forget_callers(&engine->s.c);
	*out = engine;
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

/* -- Closing --------------------------------------------------------------- */

static void say_closing(struct engine *engine)
{
	turn_lock(&engine->turn);
	engine->closing = engine->ending = true;
	for (int who = 0; who < TURN_WHO; who++)
		turn_mark(&engine->turn, who);
	turn_mark_workers(&engine->turn, UINT32_MAX);
	turn_unlock(&engine->turn);
}

/* Calls that wait return; false if one does not. */
static bool callers_left(struct engine *engine, uint64_t until_ns)
{
	LOCK_SCOPE(&engine->turn.lock);

	while (engine->callers > 0)
		if (!turn_wait_until(&engine->turn, TURN_CLOSER, until_ns))
			return false;
	return true;
}

/* Free everything that a hung read does not need. */
static void abandon(struct engine *engine)
{
	lender_leave(engine->lender);
	LOCK_SCOPE(&engine->turn.lock);
	workers_release(engine);
	engine->workers = NULL;
	entries_free(engine->entries, &engine->memory);
	engine->entries = NULL;
	memory_trim(&engine->memory);
}

static void loader_free(struct engine *engine)
{
	reader_release(engine);
	help_free(engine->help);
	workers_release(engine);
	entries_free(engine->entries, &engine->memory);
	engine->entries = NULL;
	planner_release(engine);
	echo_release(engine);
	meter_free(engine->meter);
	memory_trim(&engine->memory);
	if (engine->lender)
		lender_leave(engine->lender);
	dataset_close(engine->dataset);
	if (engine->turns)
		turn_release(&engine->turn);
	free(engine);
}

int engine_close(struct engine *engine)
{
	uint64_t until_ns = clock_now_ns() + CLOSE_NS;
	uint32_t left;
	bool ended;

	if (!engine->lender) { /* not opened so far */
		loader_free(engine);
		return 0;
	}
	say_closing(engine);
	left = reader_stop(engine, READS_END_NS);
	ended = workers_stop(engine, until_ns) &&
		callers_left(engine, until_ns);
	ended = help_stop(engine->help, until_ns) && ended;
	if (ended && !left)
		loader_free(engine);
	else if (ended)
		abandon(engine);
	return (int)left + (ended ? 0 : 1);
}

/* -- Asking ---------------------------------------------------------------- */

uint64_t engine_steps_left(struct engine *engine)
{
	LOCK_SCOPE(&engine->turn.lock);
	return engine->planner.steps - steps_first(engine->steps);
}

uint64_t engine_step(struct engine *engine)
{
	LOCK_SCOPE(&engine->turn.lock);
	return steps_first(engine->steps);
}

uint64_t engine_epoch_end(struct engine *engine, uint64_t epoch)
{
	LOCK_SCOPE(&engine->turn.lock);
	return schedule_epoch_end_all(&engine->planner.schedule, epoch);
}

void engine_failure(struct engine *engine, struct refrain_failure *out)
{
	LOCK_SCOPE(&engine->turn.lock);
	*out = engine->failure;
}

const struct settings *engine_settings(const struct engine *engine)
{
	return &engine->s;
}

const struct dataset *engine_dataset(const struct engine *engine)
{
	return engine->dataset;
}

/* -- As a source of batches ------------------------------------------------ */

static struct engine *engine_of(struct batch_source *source)
{
	return CONTAINER_OF(source, struct engine, source);
}

static int source_next(
	struct batch_source *source, struct lent_batch **out, int timeout_ms)
{
	return engine_next(engine_of(source), out, timeout_ms);
}

static int source_fd(struct batch_source *source)
{
	return engine_of(source)->turn.event_fd;
}

static int source_close(struct batch_source *source)
{
	return engine_close(engine_of(source));
}

static void source_message(struct batch_source *source, struct error *out)
{
	struct engine *engine = engine_of(source);

	LOCK_SCOPE(&engine->turn.lock);
	*out = engine->message.msg[0] ? engine->message : engine->damage;
}

struct batch_source *engine_source(struct engine *engine)
{
	engine->source = (struct batch_source){
		source_next, source_fd, source_close, source_message};
	return &engine->source;
}

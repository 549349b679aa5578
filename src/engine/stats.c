/* SPDX-License-Identifier: MIT */
/*
 * What is counted, and what is made of it. Counters are kept under the loader's
 * lock where things happen; rates are differences between now and the last
 * window but one, made when somebody asks.
 *
 * Workers make both halves of the pipeline, so the wall time of the upstream
 * is not seen on a clock: it is what they spend on decoding and on waiting for
 * reads while batches are wanted, shared among them. A worker that sleeps
 * because enough batches are ready counts for neither.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/engine_impl.h"

#define WINDOW_STEPS_MIN 16

int meter_init(struct engine *engine)
{
	struct meter *m = &engine->meter;
	uint64_t steps = engine->planner.schedule.c.window / engine->s.c.batch;

	m->window_steps = steps > WINDOW_STEPS_MIN ? steps : WINDOW_STEPS_MIN;
	m->out.min_lag_steps = UINT64_MAX;
	m->ticked_ns = clock_now_ns();
	m->stream = hash_stream_new();
	return m->stream ? 0 : -ENOMEM;
}

void meter_release(struct engine *engine)
{
	hash_stream_free(engine->meter.stream);
	free(engine->meter.damaged);
}

/* A file was read. */
void meter_read(struct engine *engine)
{
	struct sums *now = &engine->meter.now;
	struct reader *r = &engine->reader;
	uint64_t ns;

	now->reads++;
	now->full_reads += r->full;
	/* As fast as before is the end of a burst that lasts, too. */
	if (!r->full && !(r->burst.since && r->reading > r->allowed / 4)) {
		r->burst = (struct auto_burst){0};
		return;
	}
	now->long_reads +=
		auto_burst_read(&r->burst, engine->meter.ticked_ns, &ns);
	now->long_ns += ns;
}

void meter_tick(struct engine *engine)
{
	struct meter *m = &engine->meter;
	uint64_t now_ns = clock_now_ns();

	if (engine->unfinished > engine->working + engine->ready)
		m->now.read_wait_ns +=
			turn_idle(&engine->turn) * (now_ns - m->ticked_ns);
	if (engine->reader.full)
		m->now.full_ns += now_ns - m->ticked_ns;
	if (engine->reader.reading)
		m->now.reading_ns += now_ns - m->ticked_ns;
	m->ticked_ns = now_ns;
}

/* -- A batch is returned --------------------------------------------------- */

static void put64(uint8_t *at, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

static void hash_slots(struct meter *m, const struct step *st)
{
	uint8_t bytes[64][3][8];
	uint32_t n = 0;

	for (uint32_t i = 0; i < st->count; i++) {
		put64(bytes[n][0], st->slots[i].index);
		put64(bytes[n][1], st->slots[i].echo);
		put64(bytes[n][2], st->slots[i].augment_seed);
		if (++n < 64 && i + 1 < st->count)
			continue;
		hash_stream_add(m->stream, bytes, n * sizeof(*bytes));
		n = 0;
	}
}

/* Rare, so it may cost something. */
static bool is_exception(const struct engine *engine, uint64_t step)
{
	struct schedule_facts facts;

	schedule_facts(&engine->planner.schedule, &facts);
	return facts.apart && step == facts.exception_step;
}

static void count_step(struct engine *engine, const struct step *st)
{
	struct meter *m = &engine->meter;
	struct refrain_stats *out = &m->out;

	out->steps++;
	out->fresh += st->fresh;
	m->damaged_fresh += st->damaged;
	out->served += st->count;
	out->epochs += st->epochs_ended;
	out->substituted += st->substituted;
	out->zero_filled += st->zero_filled;
	out->in_batch_duplicates += st->duplicates;
	if (st->duplicates && is_exception(engine, st->number))
		out->end_duplicates += st->duplicates;
	m->lag_sum += st->lag_sum;
	m->lags += st->lags;
	if (st->lag_min < out->min_lag_steps)
		out->min_lag_steps = st->lag_min;
}

static void count_times(
	struct engine *engine, uint64_t called_ns, uint64_t now_ns)
{
	struct meter *m = &engine->meter;
	struct refrain_stage *trainer = &m->out.stages[REFRAIN_STAGE_TRAINER];

	trainer->items++;
	trainer->bytes += engine->s.sample_bytes * engine->s.c.batch;
	m->now.steps++;
	m->now.wall_ns = now_ns;
	if (!m->returned_ns) { /* nothing came before the first */
		m->before = m->older = m->first = m->now;
		return;
	}
	trainer->busy_ns += called_ns - m->returned_ns;
	trainer->wait_ns += now_ns - called_ns;
	m->now.trainer_ns += called_ns - m->returned_ns;
	m->now.wait_ns += now_ns - called_ns;
	if (m->now.steps - m->before.steps < m->window_steps)
		return;
	m->older = m->before;
	m->before = m->now;
	if (m->windows++ == 0)
		m->first = m->now;
}

void meter_returned(struct engine *engine, const struct step *st,
	uint64_t called_ns, uint64_t now_ns)
{
	struct meter *m = &engine->meter;

	meter_tick(engine);
	hash_slots(m, st);
	count_step(engine, st);
	count_times(engine, called_ns, now_ns);
	m->returned_ns = now_ns;
	echo_returned(engine);
}

/* -- What is asked for ----------------------------------------------------- */

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* Per step or batch, in ms. */
struct rates {
	double read, decode, augment, trainer, wait;
};

static void rates_of(const struct engine *engine, struct rates *r)
{
	const struct sums *a = &engine->meter.older, *b = &engine->meter.now;
	double steps = (double)(b->steps - a->steps) * 1e6;
	double shared = steps * engine->threads;

	r->read = ratio((double)(b->read_wait_ns - a->read_wait_ns), shared);
	r->decode = ratio((double)(b->decode_ns - a->decode_ns), shared);
	r->augment = ratio((double)(b->augment_ns - a->augment_ns), shared);
	r->trainer = ratio((double)(b->trainer_ns - a->trainer_ns), steps);
	r->wait = ratio((double)(b->wait_ns - a->wait_ns), steps);
}

static const char *bottleneck_of(const struct rates *r)
{
	/* A trainer that hardly waits is what everything else waits for. */
	if (r->wait * 20 < r->trainer)
		return "trainer";
	if (r->read > r->decode && r->read > r->augment)
		return "read";
	return r->augment > r->decode ? "augment" : "decode";
}

/*
 * Per batch of decoded examples, not per step. When nothing was decoded of
 * late, as at the end of a run with echoes, it is that of the whole run.
 */
static double upstream_ms(const struct engine *engine)
{
	const struct sums none = {0}, *now = &engine->meter.now;
	const struct sums *from = &engine->meter.older;
	uint64_t ns;

	if (now->decoded == from->decoded)
		from = &none;
	ns = now->read_wait_ns - from->read_wait_ns + now->decode_ns -
		from->decode_ns;
	return ratio((double)ns * engine->s.c.batch,
		(double)(now->decoded - from->decoded) * engine->threads * 1e6);
}

/*
 * By threads, which costs nothing where the work is done. What a worker does
 * beside its stages (planning, locks) is shared among them as their time is.
 */
static void derive_cpu(struct engine *engine, struct refrain_stats *out)
{
	struct refrain_stage *decode = &out->stages[REFRAIN_STAGE_DECODE];
	struct refrain_stage *augment = &out->stages[REFRAIN_STAGE_AUGMENT];
	double all = (double)workers_cpu_ns(engine);
	double busy = (double)(decode->busy_ns + augment->busy_ns);

	out->stages[REFRAIN_STAGE_READ].cpu_ns = reader_cpu_ns(engine);
	decode->cpu_ns = (uint64_t)(all * ratio((double)decode->busy_ns, busy));
	augment->cpu_ns =
		(uint64_t)(all * ratio((double)augment->busy_ns, busy));
}

static void derive(struct engine *engine, struct refrain_stats *out)
{
	const struct meter *m = &engine->meter;
	const struct sums *now = &m->now;
	struct schedule_echo e =
		schedule_echo_at(&engine->planner.schedule, engine->returned);
	struct auto_part measured;
	struct rates r;

	rates_of(engine, &r);
	out->size = sizeof(*out);
	derive_cpu(engine, out);
	out->mean_lag_steps = ratio((double)m->lag_sum, (double)m->lags);
	if (!m->lags)
		out->min_lag_steps = 0;
	out->echo_factor = ratio(e.p, e.q);
	out->echo_changes = engine->echoes.made;
	out->pool_bytes = engine->kept_bytes;
	out->memory_bytes = engine->memory.charged;
	out->memory_bytes_peak = engine->memory.peak;
	out->t_upstream_ms = upstream_ms(engine);
	out->t_downstream_ms = r.trainer + r.augment;
	if (auto_measured(&engine->echoes.measured, &measured)) {
		out->t_upstream_ms = measured.up_ns / NS_PER_MS;
		out->t_downstream_ms = measured.down_ns / NS_PER_MS;
	}
	out->r = ratio(out->t_upstream_ms, out->t_downstream_ms);
	out->stall_pct = 100 *
		ratio((double)(now->wait_ns - m->first.wait_ns),
			(double)(now->wall_ns - m->first.wall_ns));
	out->stream_hash = hash_stream_value(m->stream);
	out->echo_reason = echo_reason(engine, &out->echo_needs_fresh);
	out->bottleneck = bottleneck_of(&r);
	/* A batch is put together as its samples are made: echoes of whole
	 * ones would save no more than echoes after augmentation. */
	out->suggested_point =
		strcmp(out->bottleneck, "augment") == 0 ? "after" : "before";
}

void engine_stats(struct engine *engine, struct refrain_stats *out)
{
	LOCK_SCOPE(&engine->turn.lock);

	meter_tick(engine);
	*out = engine->meter.out;
	derive(engine, out);
}

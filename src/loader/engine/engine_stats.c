/* SPDX-License-Identifier: MIT */
/*
 * Computes statistics from the meter's counters and times when they are
 * requested.
 */
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "loader/engine/engine_impl.h"

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* Times for a step or batch, in ms. */
struct rates {
	double read, decode, augment, trainer, wait;
};

static void rates_of(
	const struct meter_view *m, uint32_t threads, struct rates *r)
{
	const struct sums *a = &m->older, *b = &m->now;
	double steps = (double)(b->steps - a->steps) * 1e6;
	double shared = steps * threads;

	r->read = ratio((double)(b->read_wait_ns - a->read_wait_ns), shared);
	r->decode = ratio((double)(b->decode_ns - a->decode_ns), shared);
	r->augment = ratio((double)(b->augment_ns - a->augment_ns), shared);
	r->trainer = ratio((double)(b->trainer_ns - a->trainer_ns), steps);
	r->wait = ratio((double)(b->wait_ns - a->wait_ns), steps);
}

static const char *bottleneck_of(const struct rates *r)
{
	/* The trainer is the bottleneck if it hardly waits. */
	if (r->wait * 20 < r->trainer)
		return "trainer";
	if (r->read > r->decode && r->read > r->augment)
		return "read";
	return r->augment > r->decode ? "augment" : "decode";
}

/* Returns the upstream's time for a batch of decoded examples (not for a step),
 * in ms. If nothing was decoded in the last windows, as at the end of a run
 * with echoes, returns the mean of the whole run. */
static double upstream_ms(
	const struct engine *engine, const struct meter_view *m)
{
	const struct sums none = {0}, *now = &m->now, *from = &m->older;
	uint64_t ns;

	if (now->decoded == from->decoded)
		from = &none;
	ns = now->read_wait_ns - from->read_wait_ns + now->decode_ns -
		from->decode_ns;
	return ratio((double)ns * engine->s.c.batch,
		(double)(now->decoded - from->decoded) *
			workers_count(engine->parts.workers) * 1e6);
}

/*
 * Compute the CPU time of each stage. It is measured for each thread, which
 * costs nothing while threads work. A worker's time outside of its stages
 * (planning, locks) is divided among the stages in proportion to their times.
 */
static void derive_cpu(struct engine *engine, struct refrain_stats *out)
{
	struct refrain_stage *decode = &out->stages[REFRAIN_STAGE_DECODE];
	struct refrain_stage *augment = &out->stages[REFRAIN_STAGE_AUGMENT];
	double all = (double)workers_cpu_ns(engine->parts.workers);
	double busy = (double)(decode->busy_ns + augment->busy_ns);

	out->stages[REFRAIN_STAGE_READ].cpu_ns =
		reader_cpu_ns(engine->parts.reader);
	decode->cpu_ns = (uint64_t)(all * ratio((double)decode->busy_ns, busy));
	augment->cpu_ns =
		(uint64_t)(all * ratio((double)augment->busy_ns, busy));
}

static void derive_service(
	const struct engine *engine, struct refrain_stats *out)
{
	struct pull_counts c;

	puller_counts(engine->parts.puller, &c);
	out->service_remote = c.remote;
	out->service_late = c.late;
	out->service_missing = c.missing;
	out->service_bad = c.bad;
	out->service_failed = c.failed;
	out->service_bytes = c.bytes;
	out->service_live = c.live;
	out->service_workers = c.workers;
}

static void derive(struct engine *engine, const struct meter_view *m,
	struct refrain_stats *out)
{
	const struct sums *now = &m->now;
	struct schedule_echo e = schedule_echo_at(
		&engine->schedule, steps_first(engine->parts.steps));
	struct auto_part measured;
	struct rates r;

	rates_of(m, workers_count(engine->parts.workers), &r);
	out->size = sizeof(*out);
	derive_cpu(engine, out);
	out->mean_lag_steps = ratio((double)m->lag_sum, (double)m->lags);
	if (!m->lags)
		out->min_lag_steps = 0;
	out->echo_factor = ratio(e.p, e.q);
	out->echo_changes = echo_changes(engine->parts.echoes);
	out->pool_bytes = originals_kept_bytes(engine->parts.pool);
	out->memory_bytes = engine->memory.charged;
	out->memory_bytes_peak = engine->memory.peak;
	out->mount_returns = help_returns(engine->parts.help);
	if (out->rereads)
		out->memory_wanted_bytes =
			budget_wanted_bytes(engine->parts.budget);
	out->t_upstream_ms = upstream_ms(engine, m);
	out->t_downstream_ms = r.trainer + r.augment;
	if (echo_measured(engine->parts.echoes, &measured)) {
		out->t_upstream_ms = measured.up_ns / NS_PER_MS;
		out->t_downstream_ms = measured.down_ns / NS_PER_MS;
	}
	out->r = ratio(out->t_upstream_ms, out->t_downstream_ms);
	out->stall_pct = 100 *
		ratio((double)(now->wait_ns - m->first.wait_ns),
			(double)(now->wall_ns - m->first.wall_ns));
	out->stream_hash = m->stream_hash;
	derive_service(engine, out);
	out->echo_reason =
		echo_reason(engine->parts.echoes, &out->echo_needs_fresh);
	out->bottleneck = bottleneck_of(&r);
	/* `batch` is never suggested: to assemble a batch costs nothing extra,
	 * so echoes of whole batches save no more than echoes after
	 * augmentation. */
	out->suggested_point =
		strcmp(out->bottleneck, "augment") == 0 ? "after" : "before";
}

void engine_tick(struct engine *engine)
{
	bool unread = steps_unfinished(engine->parts.steps) >
		puller_waiting(engine->parts.puller) +
			budget_working(engine->parts.budget) +
			steps_ready(engine->parts.steps);
	struct meter_state state = {
		.waiting = unread ? turn_idle(&engine->turn) : 0,
		.full = reader_is_full(engine->parts.reader),
		.reading = budget_reading(engine->parts.budget) > 0,
	};

	meter_tick(engine->parts.meter, &state);
}

void engine_stats(struct batch_source *source, struct refrain_stats *out)
{
	struct engine *engine = engine_of(source);
	struct meter_view view;

	TURN_LOOK_SCOPE(&engine->turn);
	engine_tick(engine);
	*out = *meter_stats(engine->parts.meter);
	meter_view(engine->parts.meter, &view);
	derive(engine, &view, out);
}

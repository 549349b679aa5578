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
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "loader/loader_impl.h"

#define WINDOW_STEPS_MIN 16

int meter_init(struct refrain_loader *l)
{
	struct meter *m = &l->meter;
	uint64_t steps = l->planner.schedule.c.window / l->s.c.batch;

	m->window_steps = steps > WINDOW_STEPS_MIN ? steps : WINDOW_STEPS_MIN;
	m->out.min_lag_steps = UINT64_MAX;
	m->ticked_ns = clock_now_ns();
	m->stream = hash_stream_new();
	return m->stream ? 0 : -ENOMEM;
}

void meter_release(struct refrain_loader *l)
{
	hash_stream_free(l->meter.stream);
	free(l->meter.damaged);
}

/* A file was read. */
void meter_read(struct refrain_loader *l)
{
	struct sums *now = &l->meter.now;
	struct reader *r = &l->reader;
	uint64_t ns;

	now->reads++;
	now->full_reads += r->full;
	/* As fast as before is the end of a burst that lasts, too. */
	if (!r->full && !(r->burst.since && r->reading > r->allowed / 4)) {
		r->burst = (struct auto_burst){0};
		return;
	}
	now->long_reads += auto_burst_read(&r->burst, l->meter.ticked_ns, &ns);
	now->long_ns += ns;
}

void meter_tick(struct refrain_loader *l)
{
	struct meter *m = &l->meter;
	uint64_t now_ns = clock_now_ns();

	if (l->unfinished > l->working + l->ready)
		m->now.read_wait_ns +=
			turn_idle(&l->turn) * (now_ns - m->ticked_ns);
	if (l->reader.full)
		m->now.full_ns += now_ns - m->ticked_ns;
	if (l->reader.reading)
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
static bool is_exception(const struct refrain_loader *l, uint64_t step)
{
	struct schedule_facts facts;

	schedule_facts(&l->planner.schedule, &facts);
	return facts.apart && step == facts.exception_step;
}

static void count_step(struct refrain_loader *l, const struct step *st)
{
	struct meter *m = &l->meter;
	struct refrain_stats *out = &m->out;

	out->steps++;
	out->fresh += st->fresh;
	m->damaged_fresh += st->damaged;
	out->served += st->count;
	out->epochs += st->epochs_ended;
	out->substituted += st->substituted;
	out->zero_filled += st->zero_filled;
	out->in_batch_duplicates += st->duplicates;
	if (st->duplicates && is_exception(l, st->number))
		out->end_duplicates += st->duplicates;
	m->lag_sum += st->lag_sum;
	m->lags += st->lags;
	if (st->lag_min < out->min_lag_steps)
		out->min_lag_steps = st->lag_min;
}

static void count_times(
	struct refrain_loader *l, uint64_t called_ns, uint64_t now_ns)
{
	struct meter *m = &l->meter;
	struct refrain_stage *trainer = &m->out.stages[REFRAIN_STAGE_TRAINER];

	trainer->items++;
	trainer->bytes += l->s.sample_bytes * l->s.c.batch;
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

void meter_returned(struct refrain_loader *l, const struct step *st,
	uint64_t called_ns, uint64_t now_ns)
{
	struct meter *m = &l->meter;

	meter_tick(l);
	hash_slots(m, st);
	count_step(l, st);
	count_times(l, called_ns, now_ns);
	m->returned_ns = now_ns;
	echo_returned(l);
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

static void rates_of(const struct refrain_loader *l, struct rates *r)
{
	const struct sums *a = &l->meter.older, *b = &l->meter.now;
	double steps = (double)(b->steps - a->steps) * 1e6;
	double shared = steps * l->threads;

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
static double upstream_ms(const struct refrain_loader *l)
{
	const struct sums none = {0}, *now = &l->meter.now;
	const struct sums *from = &l->meter.older;
	uint64_t ns;

	if (now->decoded == from->decoded)
		from = &none;
	ns = now->read_wait_ns - from->read_wait_ns + now->decode_ns -
		from->decode_ns;
	return ratio((double)ns * l->s.c.batch,
		(double)(now->decoded - from->decoded) * l->threads * 1e6);
}

/*
 * By threads, which costs nothing where the work is done. What a worker does
 * beside its stages (planning, locks) is shared among them as their time is.
 */
static void derive_cpu(struct refrain_loader *l, struct refrain_stats *out)
{
	struct refrain_stage *decode = &out->stages[REFRAIN_STAGE_DECODE];
	struct refrain_stage *augment = &out->stages[REFRAIN_STAGE_AUGMENT];
	double all = (double)workers_cpu_ns(l);
	double busy = (double)(decode->busy_ns + augment->busy_ns);

	out->stages[REFRAIN_STAGE_READ].cpu_ns = reader_cpu_ns(l);
	decode->cpu_ns = (uint64_t)(all * ratio((double)decode->busy_ns, busy));
	augment->cpu_ns =
		(uint64_t)(all * ratio((double)augment->busy_ns, busy));
}

static void derive(struct refrain_loader *l, struct refrain_stats *out)
{
	const struct meter *m = &l->meter;
	const struct sums *now = &m->now;
	struct schedule_echo e =
		schedule_echo_at(&l->planner.schedule, l->returned);
	struct auto_part measured;
	struct rates r;

	rates_of(l, &r);
	out->size = sizeof(*out);
	derive_cpu(l, out);
	out->mean_lag_steps = ratio((double)m->lag_sum, (double)m->lags);
	if (!m->lags)
		out->min_lag_steps = 0;
	out->echo_factor = ratio(e.p, e.q);
	out->echo_changes = l->echoes.made;
	out->pool_bytes = l->kept_bytes;
	out->memory_bytes = l->memory.charged;
	out->memory_bytes_peak = l->memory.peak;
	out->t_upstream_ms = upstream_ms(l);
	out->t_downstream_ms = r.trainer + r.augment;
	if (auto_measured(&l->echoes.measured, &measured)) {
		out->t_upstream_ms = measured.up_ns / NS_PER_MS;
		out->t_downstream_ms = measured.down_ns / NS_PER_MS;
	}
	out->r = ratio(out->t_upstream_ms, out->t_downstream_ms);
	out->stall_pct = 100 *
		ratio((double)(now->wait_ns - m->first.wait_ns),
			(double)(now->wall_ns - m->first.wall_ns));
	out->stream_hash = hash_stream_value(m->stream);
	out->echo_reason = echo_reason(l, &out->echo_needs_fresh);
	out->bottleneck = bottleneck_of(&r);
	/* A batch is put together as its samples are made: echoes of whole
	 * ones would save no more than echoes after augmentation. */
	out->suggested_point =
		strcmp(out->bottleneck, "augment") == 0 ? "after" : "before";
}

static void take(struct refrain_loader *l, struct refrain_stats *out)
{
	LOCK_SCOPE(&l->turn.lock);

	meter_tick(l);
	*out = l->meter.out;
	derive(l, out);
}

int refrain_stats_get(struct refrain_loader *l, struct refrain_stats *out)
{
	struct refrain_stats all;
	size_t size = out->size < sizeof(all) ? out->size : sizeof(all);

	if (l->pid != getpid())
		return -ECHILD;
	if (size < sizeof(out->size))
		return -EINVAL;
	take(l, &all);
	memcpy(out, &all, size);
	return 0;
}

/* -- JSON ------------------------------------------------------------------ */

enum kind { UINT, REAL, TEXT, HASH };

struct field {
	const char *name;
	size_t offset;
	enum kind kind;
};

#define FIELD(name, kind)                                                      \
	{                                                                      \
#name, offsetof(struct refrain_stats, name), kind              \
	}
#define STAGE(i, name, member)                                                 \
	{                                                                      \
		name "_" #member,                                              \
			offsetof(struct refrain_stats, stages) +               \
			(i) * sizeof(struct refrain_stage) +                   \
			offsetof(struct refrain_stage, member),                \
			UINT                                                   \
	}
#define TIME_FIELDS(i, name)                                                   \
	STAGE(i, name, items), STAGE(i, name, bytes), STAGE(i, name, busy_ns), \
		STAGE(i, name, wait_ns)

static const struct field fields[] = {
	FIELD(epochs, UINT),
	FIELD(steps, UINT),
	FIELD(fresh, UINT),
	FIELD(served, UINT),
	FIELD(files_read, UINT),
	FIELD(bytes_read, UINT),
	FIELD(direct_hits, UINT),
	FIELD(decodes, UINT),
	FIELD(redecodes, UINT),
	FIELD(rereads, UINT),
	FIELD(errors, UINT),
	FIELD(errors_read, UINT),
	FIELD(errors_format, UINT),
	FIELD(errors_damaged, UINT),
	FIELD(errors_too_large, UINT),
	FIELD(substituted, UINT),
	FIELD(zero_filled, UINT),
	FIELD(dropped_examples, UINT),
	FIELD(dropped_echoes, UINT),
	FIELD(in_batch_duplicates, UINT),
	FIELD(end_duplicates, UINT),
	FIELD(min_lag_steps, UINT),
	FIELD(mean_lag_steps, REAL),
	FIELD(echo_factor, REAL),
	FIELD(pool_bytes, UINT),
	FIELD(pool_bytes_peak, UINT),
	FIELD(memory_bytes, UINT),
	FIELD(memory_bytes_peak, UINT),
	FIELD(reads_abandoned, UINT),
	TIME_FIELDS(REFRAIN_STAGE_READ, "read"),
	STAGE(REFRAIN_STAGE_READ, "read", cpu_ns),
	TIME_FIELDS(REFRAIN_STAGE_DECODE, "decode"),
	STAGE(REFRAIN_STAGE_DECODE, "decode", cpu_ns),
	TIME_FIELDS(REFRAIN_STAGE_AUGMENT, "augment"),
	STAGE(REFRAIN_STAGE_AUGMENT, "augment", cpu_ns),
	TIME_FIELDS(REFRAIN_STAGE_TRAINER, "trainer"),
	FIELD(t_upstream_ms, REAL),
	FIELD(t_downstream_ms, REAL),
	FIELD(r, REAL),
	FIELD(stall_pct, REAL),
	FIELD(stream_hash, HASH),
	FIELD(bottleneck, TEXT),
	FIELD(suggested_point, TEXT),
	FIELD(echo_changes, UINT),
	FIELD(damaged_examples, UINT),
	FIELD(substitute_errors, UINT),
	FIELD(echo_reason, TEXT),
	FIELD(echo_needs_fresh, UINT),
	FIELD(dropped_fresh, UINT),
};

/* One member; as snprintf(). No text of ours needs quoting. */
static int print_field(
	char *at, size_t room, const struct field *f, const void *stats)
{
	const void *v = (const char *)stats + f->offset;

	switch (f->kind) {
	case UINT:
		return snprintf(at, room, "\"%s\":%" PRIu64, f->name,
			*(const uint64_t *)v);
	case REAL:
		return snprintf(
			at, room, "\"%s\":%.6g", f->name, *(const double *)v);
	case HASH:
		return snprintf(at, room, "\"%s\":\"%016" PRIx64 "\"", f->name,
			*(const uint64_t *)v);
	case TEXT:
		break;
	}
	return snprintf(
		at, room, "\"%s\":\"%s\"", f->name, *(const char *const *)v);
}

int refrain_stats_json(struct refrain_loader *l, char *buf, size_t size)
{
	size_t n = sizeof(fields) / sizeof(*fields), used = 0;
	struct refrain_stats all;

	if (l->pid != getpid())
		return -ECHILD;
	take(l, &all);
	for (size_t i = 0; i < n; i++) {
		if (size - used < 3)
			return -ENOSPC;
		buf[used++] = i ? ',' : '{';
		used += (size_t)print_field(
			buf + used, size - used, &fields[i], &all);
		if (used + 2 > size)
			return -ENOSPC;
	}
	buf[used++] = '}';
	buf[used] = '\0';
	return (int)used;
}

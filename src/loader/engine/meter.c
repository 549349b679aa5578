/* SPDX-License-Identifier: MIT */
/*
 * The meter; see meter.h. Called with the turn's lock held.
 */
#include "loader/engine/meter.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/lock.h"

#define WINDOW_STEPS_MIN 16

struct meter {
	const struct turn *turn; /* set once; its lock guards all below */
	/* Counters. The members that are computed on request are not set */
	struct refrain_stats out;
	struct sums now, before, older;
	uint64_t window_steps;
	uint64_t windows;
	struct sums first;  /* the sums at the end of the first window */
	uint64_t ticked_ns; /* sums include the time up to this one */
	/* When the last batch was returned; 0: none was */
	uint64_t returned_ns;
	uint64_t lag_sum, lags;
	struct hash_stream *stream;
	/* Sum of costs, and number, of files read */
	uint64_t file_sum, file_count;
	/* Number of damaged fresh examples in returned batches */
	uint64_t damaged_fresh;
	/* One bit for each example; NULL: no example has failed yet */
	uint8_t *damaged;
};

int meter_new(struct meter **out, const struct turn *turn)
{
	struct meter *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->turn = turn;
	m->window_steps = WINDOW_STEPS_MIN;
	m->out.min_lag_steps = UINT64_MAX;
	m->ticked_ns = clock_now_ns();
	m->stream = hash_stream_new();
	if (!m->stream) {
		free(m);
		return -ENOMEM;
	}
	*out = m;
	return 0;
}

void meter_free(struct meter *m)
{
	if (!m)
		return;
	hash_stream_free(m->stream);
	free(m->damaged);
	free(m);
}

void meter_set_window(struct meter *m, uint64_t steps)
{
	if (steps > WINDOW_STEPS_MIN)
		m->window_steps = steps;
}

/* -- Time ------------------------------------------------------------------ */

void meter_tick(struct meter *m, const struct meter_state *state)
{
	uint64_t now_ns = clock_now_ns(), passed_ns = now_ns - m->ticked_ns;

	ASSERT_TURN(m->turn);
	m->now.read_wait_ns += state->waiting * passed_ns;
	if (state->full)
		m->now.full_ns += passed_ns;
	if (state->reading)
		m->now.reading_ns += passed_ns;
	m->ticked_ns = now_ns;
}

uint64_t meter_now_ns(const struct meter *m)
{
	ASSERT_TURN(m->turn);
	return m->ticked_ns;
}

/* -- Counting -------------------------------------------------------------- */

struct refrain_stats *meter_stats(struct meter *m)
{
	ASSERT_TURN(m->turn);
	return &m->out;
}

void meter_file(struct meter *m, uint64_t cost, bool full)
{
	ASSERT_TURN(m->turn);
	m->now.reads++;
	m->now.full_reads += full;
	m->file_sum += cost;
	m->file_count++;
}

void meter_timed(struct meter *m, uint32_t reads, uint64_t ns)
{
	ASSERT_TURN(m->turn);
	m->now.long_reads += reads;
	m->now.long_ns += ns;
}

void meter_burst(struct meter *m)
{
	ASSERT_TURN(m->turn);
	m->now.bursts++;
}

static void count_stage(
	struct refrain_stage *stage, uint64_t bytes, uint64_t ns)
{
	stage->items++;
	stage->bytes += bytes;
	stage->busy_ns += ns;
}

void meter_decoded(struct meter *m, uint64_t bytes, uint64_t ns, bool again)
{
	ASSERT_TURN(m->turn);
	count_stage(&m->out.stages[REFRAIN_STAGE_DECODE], bytes, ns);
	m->now.decode_ns += ns;
	m->now.decoded++;
	m->out.decodes++;
	m->out.redecodes += again;
}

void meter_augmented(struct meter *m, uint64_t bytes, uint64_t ns)
{
	ASSERT_TURN(m->turn);
	count_stage(&m->out.stages[REFRAIN_STAGE_AUGMENT], bytes, ns);
	m->now.augment_ns += ns;
}

size_t meter_damaged_bytes(uint64_t examples)
{
	return examples / 8 + 1;
}

/* Count an example only once. There is one bit for each example; they are
 * allocated at the first failure. If there is no memory for them, every failure
 * counts. */
void meter_damaged(struct meter *m, uint64_t index, uint64_t examples,
	uint64_t *memory_bytes)
{
	uint8_t bit = (uint8_t)(1U << (index % 8));

	ASSERT_TURN(m->turn);
	*memory_bytes = 0;
	if (!m->damaged) {
		m->damaged = calloc(1, meter_damaged_bytes(examples));
		if (m->damaged)
			*memory_bytes = meter_damaged_bytes(examples);
	}
	if (m->damaged && (m->damaged[index / 8] & bit))
		return;
	if (m->damaged)
		m->damaged[index / 8] |= bit;
	m->out.damaged_examples++;
}

/* -- Returning a batch ----------------------------------------------------- */

static void put64(uint8_t *at, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

static void hash_slots(struct meter *m, const struct meter_step *st)
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

static void count_step(struct meter *m, const struct meter_step *st)
{
	struct refrain_stats *out = &m->out;

	out->steps++;
	out->fresh += st->fresh;
	m->damaged_fresh += st->damaged;
	out->served += st->count;
	out->epochs += st->epochs_ended;
	out->substituted += st->substituted;
	out->zero_filled += st->zero_filled;
	out->in_batch_duplicates += st->duplicates;
	if (st->exception)
		out->end_duplicates += st->duplicates;
	m->lag_sum += st->lag_sum;
	m->lags += st->lags;
	if (st->lag_min < out->min_lag_steps)
		out->min_lag_steps = st->lag_min;
}

static void end_window(struct meter *m)
{
	m->older = m->before;
	m->before = m->now;
	if (m->windows++ == 0)
		m->first = m->now;
}

static void count_times(struct meter *m, const struct meter_step *st)
{
	struct refrain_stage *trainer = &m->out.stages[REFRAIN_STAGE_TRAINER];
	uint64_t trainer_ns = st->called_ns - m->returned_ns;
	uint64_t wait_ns = st->now_ns - st->called_ns;

	trainer->items++;
	trainer->bytes += st->bytes;
	m->now.steps++;
	m->now.wall_ns = st->now_ns;
	/* Times count from the first batch on */
	if (!m->returned_ns) {
		m->before = m->older = m->first = m->now;
		return;
	}
	trainer->busy_ns += trainer_ns;
	trainer->wait_ns += wait_ns;
	m->now.trainer_ns += trainer_ns;
	m->now.wait_ns += wait_ns;
	if (m->now.steps - m->before.steps >= m->window_steps)
		end_window(m);
}

void meter_returned(struct meter *m, const struct meter_step *step)
{
	ASSERT_TURN(m->turn);
	hash_slots(m, step);
	count_step(m, step);
	count_times(m, step);
	m->returned_ns = step->now_ns;
}

/* -- Queries --------------------------------------------------------------- */

uint64_t meter_file_mean(const struct meter *m)
{
	ASSERT_TURN(m->turn);
	return m->file_count ? m->file_sum / m->file_count : 0;
}

uint64_t meter_damaged_fresh(const struct meter *m)
{
	ASSERT_TURN(m->turn);
	return m->damaged_fresh;
}

uint64_t meter_step_ns(const struct meter *m)
{
	uint64_t steps = m->now.steps - m->older.steps;

	ASSERT_TURN(m->turn);
	return steps ? (m->now.trainer_ns - m->older.trainer_ns) / steps : 0;
}

void meter_view(const struct meter *m, struct meter_view *out)
{
	ASSERT_TURN(m->turn);
	*out = (struct meter_view){
		.first = m->first,
		.older = m->older,
		.now = m->now,
		.lag_sum = m->lag_sum,
		.lags = m->lags,
		.stream_hash = hash_stream_value(m->stream),
	};
}

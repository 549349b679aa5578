/* SPDX-License-Identifier: MIT */
/*
 * Chooses the next file to read, and gets memory for it. Files that planned
 * servings wait for come first. Nothing is read while an original waits for
 * memory to be decoded. Called with the turn's lock held, when there is
 * something new to read or memory was freed.
 */
#include <errno.h>

#include "common/base/clock.h"
#include "loader/engine/reader_files_impl.h"

#define GUESS_BYTES ((uint64_t)128 << 10)
#define GUESS_LEAST_BYTES ((uint64_t)2 << 10)

static void start(struct reader *reader, struct original *o, struct buffer *b)
{
	struct read_op *r = reader->free;
	uint64_t now_ns = meter_now_ns(reader->parts->meter);
	reader->free = r->next;
	reader->busy++;
	budget_begin_read(reader->parts->budget);
	meter_stats(reader->parts->meter)->stages[REFRAIN_STAGE_READ].wait_ns +=
		now_ns - o->since_ns;
	original_list(reader->parts->pool, o, ON_NONE);
	original_state(reader->parts->pool, o, ORIGINAL_READING);
	r->busy = true;
	r->original = o;
	r->buffer = b;
	r->started_ns = now_ns;
	r->done = r->files = 0;
	r->base = r->end = 0;
	r->fd = -1;
	r->shared_fd = false;
	parts_begin(reader, o);
	help_note_start(reader->parts->help, o->slot.fresh);
	reader_start_first(reader, r);
}

/* Guess the size of a file: the mean size of the files so far plus a quarter,
 * but at most a small share of the memory. */
static size_t guess(const struct reader *reader)
{
	uint64_t bytes = meter_file_mean(reader->parts->meter) * 5 / 4;
	uint64_t most = budget_rest_bytes(reader->parts->budget) / 64;

	if (!bytes)
		bytes = GUESS_BYTES;
	if (bytes > most)
		bytes = most;
	return bytes < GUESS_LEAST_BYTES ? GUESS_LEAST_BYTES : bytes;
}

/* Returns the bytes that a read needs. An entry of a tier is larger than its
 * file, so it is not read if only the file fits into memory. */
static size_t bytes_needed(
	const struct reader *reader, const struct original *o)
{
	size_t bytes = parts_bytes(reader, o, true);

	if (!budget_alone(reader->parts->budget, memory_cost(bytes)))
		bytes = parts_bytes(reader, o, false);
	if (bytes < o->size_hint)
		bytes = o->size_hint;
	return bytes ? bytes : guess(reader);
}

/* Is it known before the read that the example is damaged? If so, handle it. */
static bool refuse_damaged(struct reader *reader, struct original *o)
{
	struct error why;
	int rc;

	if (parts_too_large(reader, o)) {
		rc = -E2BIG;
		reader_say_large(reader, &why);
	} else if (!budget_alone(reader->parts->budget,
			   memory_cost(bytes_needed(reader, o)))) {
		rc = error_set(&why, -E2BIG,
			"it is larger than the memory of the loader");
	} else if (parts_lack(reader, o, &why)) {
		rc = -ENOENT;
	} else {
		return false;
	}
	original_list(reader->parts->pool, o, ON_NONE);
	damage_fail(reader->parts, o, rc, "read", why.msg);
	return true;
}

/* Get memory for a planned read, or NULL. This drops no data that was read but
 * not used yet. */
static struct buffer *memory_to_read(struct reader *reader, size_t bytes)
{
	uint64_t cost = memory_cost(bytes);

	while (!budget_may_read(reader->parts->budget, cost))
		if (!budget_may_drop(reader->parts->budget) ||
			!originals_reclaim_idle(reader->parts->pool, 0))
			return NULL;
	return memory_get(reader->parts->memory, bytes);
}

/* Get memory for a read when nothing else is running. This may drop data that
 * was read but not used yet. */
static struct buffer *memory_at_rest(struct reader *reader, size_t bytes)
{
	struct buffer *b;

	budget_trim(reader->parts->budget);
	do
		b = memory_get(reader->parts->memory, bytes);
	while (!b &&
		(originals_reclaim_idle(reader->parts->pool, 0) ||
			originals_reclaim_unused(reader->parts->pool)));
	return b;
}

/* Start a read for a planned serving. Returns false if it must wait. */
static bool start_urgent(struct reader *reader, struct original *o)
{
	size_t bytes = bytes_needed(reader, o);
	struct buffer *b = memory_to_read(reader, bytes);
	struct error why;

	if (!b && !budget_at_rest(reader->parts->budget))
		return false;
	if (!b)
		b = memory_at_rest(reader, bytes);
	if (b) {
		start(reader, o, b);
		return true;
	}
	/* The example fits, so the system has no memory. */
	(void)error_set(&why, -ENOMEM, "%m");
	original_list(reader->parts->pool, o, ON_NONE);
	damage_fail(reader->parts, o, -ENOMEM, "read", why.msg);
	return true;
}

static bool start_ahead(struct reader *reader, struct original *o)
{
	uint64_t cost = memory_cost(bytes_needed(reader, o));
	struct buffer *b = NULL;

	if (budget_may_read_ahead(reader->parts->budget, cost))
		b = memory_get(reader->parts->memory, bytes_needed(reader, o));
	if (b)
		start(reader, o, b);
	return b != NULL;
}

/*
 * Should examples be read ahead now? Reads can be timed only while as many
 * reads as allowed are running. A slow trainer would cause single reads. So
 * examples are read ahead in bursts, and between two bursts the trainer uses
 * the examples that were read. A mount with a plan measures its fetches itself,
 * so no bursts are needed.
 */
static bool reads_ahead(struct reader *reader)
{
	if (!reader->parts->s->measures || help_plans(reader->parts->help))
		return originals_first_ahead(reader->parts->pool) != NULL;
	if (!originals_first_ahead(reader->parts->pool))
		reader->bursting = false;
	else if (originals_ahead(reader->parts->pool) +
				reader->parts->c->reads_ahead >=
			budget_ahead(reader->parts->budget) ||
		planner_read_all(reader->parts->planner))
		reader->bursting = true;
	return reader->bursting;
}

/* Start the next read. Returns false if there is nothing to read, or no memory
 * for it. */
static bool start_next(struct reader *reader)
{
	struct original *o = originals_first_urgent(reader->parts->pool);
	bool urgent = o != NULL;

	if (!urgent && reads_ahead(reader))
		o = originals_first_ahead(reader->parts->pool);
	if (!o ||
		(o->example.whole &&
			!help_knows(reader->parts->help, o->slot.fresh,
				o->index == o->slot.index)))
		return false;
	if (refuse_damaged(reader, o))
		return true;
	return urgent ? start_urgent(reader, o) : start_ahead(reader, o);
}

void reader_pump(struct reader *reader)
{
	bool full;

	ASSERT_TURN(reader->parts->turn);
	if (outcome_closing(reader->parts->outcome))
		return;
	while (!outcome_stopped(reader->parts->outcome) &&
		!budget_is_taken(reader->parts->budget) &&
		!originals_first_starved(reader->parts->pool, NULL) &&
		reader->free && reader->busy < reader->allowed &&
		start_next(reader))
		;
	full = reader->busy >= reader->allowed &&
		(originals_first_urgent(reader->parts->pool) ||
			reads_ahead(reader));
	if (full && !reader->full) {
		reader->burst = (struct auto_burst){0};
		meter_burst(reader->parts->meter);
	}
	reader->full = full;
}

bool reader_is_full(const struct reader *reader)
{
	ASSERT_TURN(reader->parts->turn);
	return reader->full;
}

/* SPDX-License-Identifier: MIT */
/*
 * Which file is read next, and into how much memory. What planned servings wait
 * for comes first; what is read ahead leaves a quarter of the memory alone.
 * Entered by whoever made something wanted or gave something back, under the
 * loader's lock.
 */
#include <errno.h>

#include "base/clock.h"
#include "engine/engine_impl.h"
#include "mount_help/mount_help.h"

#define GUESS_BYTES ((uint64_t)128 << 10)
#define GUESS_LEAST_BYTES ((uint64_t)2 << 10)

static void start(struct engine *engine, struct entry *e, struct buffer *b)
{
	struct reader *reader = &engine->reader;
	struct read_op *r = reader->free;
	uint64_t now_ns = meter_now_ns(engine->meter);

	reader->free = r->next;
	reader->busy++;
	reader->reading++;
	meter_stats(engine->meter)->stages[REFRAIN_STAGE_READ].wait_ns +=
		now_ns - e->since_ns;
	entry_list(engine, e, ON_NONE);
	entry_state(engine, e, ENTRY_READING);
	r->busy = true;
	r->entry = e;
	r->buffer = b;
	r->got = 0;
	r->want = e->example.bytes;
	if (e->example.whole && e->size_hint)
		r->want = e->size_hint - 1;
	r->offset = e->example.whole ? 0 : e->example.offset;
	r->started_ns = now_ns;
	r->fd = -1;
	r->shared_fd = r->direct = r->unsized = false;
	help_note_start(engine->help, e->slot.fresh);
	if (direct_start(engine, r))
		return;
	help_note_read(engine->help, 0);
	r->unsized = reader->local && e->example.whole && !e->size_hint &&
		!e->example.bytes;
	if (!e->example.whole && e->example.shard < reader->shards_max)
		r->fd = reader->shard_fds[e->example.shard];
	if (r->fd >= 0) {
		r->shared_fd = true;
		reader_read(engine, r);
		return;
	}
	reader_open(engine, r);
}

/* The size of files so far plus a quarter, but not a large share of memory. */
static size_t guess(const struct engine *engine)
{
	uint64_t bytes = meter_file_mean(engine->meter) * 5 / 4;
	uint64_t most = engine->memory_share / 64;

	if (!bytes)
		bytes = GUESS_BYTES;
	if (bytes > most)
		bytes = most;
	return bytes < GUESS_LEAST_BYTES ? GUESS_LEAST_BYTES : bytes;
}

static size_t bytes_needed(const struct engine *engine, const struct entry *e)
{
	size_t direct = direct_bytes(engine, e);

	if (direct)
		return direct;
	if (!e->example.whole)
		return e->example.bytes + !e->example.bytes;
	if (e->size_hint)
		return e->size_hint;
	/* One more, so that the end is seen in one go. */
	return e->example.bytes ? e->example.bytes + 1 : guess(engine);
}

/* Is nothing going on that could make room? */
static bool at_rest(const struct engine *engine)
{
	return !engine->working && !engine->reader.reading &&
		!steps_ready(engine->steps);
}

/* False: later. */
static bool start_urgent(struct engine *engine, struct entry *e)
{
	size_t bytes = bytes_needed(engine, e);
	bool fits = room_alone(engine, memory_cost(bytes));
	struct buffer *b;

	do
		b = memory_get(&engine->memory, bytes);
	while (!b && fits && entries_reclaim(engine));
	if (b) {
		start(engine, e, b);
		return true;
	}
	if (fits && !at_rest(engine))
		return false;
	entry_list(engine, e, ON_NONE);
	entry_fail(engine, e, -E2BIG, "read", "it is larger than the memory");
	return true;
}

/* Leave this memory free, so that planned work does not wait for memory. */
static bool start_ahead(struct engine *engine, struct entry *e)
{
	uint64_t cost = memory_cost(bytes_needed(engine, e));
	struct buffer *b = NULL;

	if (cost + engine->memory_share / 4 <= memory_room(&engine->memory))
		b = memory_get(&engine->memory, bytes_needed(engine, e));
	if (b)
		start(engine, e, b);
	return b != NULL;
}

/*
 * Reading can only be timed while it is as busy as it can be. If the trainer is
 * slower, it would ask for an example now and then. So examples are read ahead
 * in bursts, and between them the reserve is enough. A mount with a plan does
 * the timing itself.
 */
static bool reads_ahead(struct engine *engine)
{
	struct reader *reader = &engine->reader;

	if (!engine->s.measures || help_plans(engine->help))
		return entries_first_ahead(engine->entries) != NULL;
	if (!entries_first_ahead(engine->entries))
		reader->bursting = false;
	else if (entries_ahead(engine->entries) + engine->s.c.reads_ahead >=
			room_ahead(engine) ||
		engine->planner.read_fresh >= engine->planner.fresh_end)
		reader->bursting = true;
	return reader->bursting;
}

/* False: there is nothing more to be read, or no room. */
static bool start_next(struct engine *engine)
{
	struct entry *e = entries_first_urgent(engine->entries);
	bool urgent = e != NULL;

	if (!urgent && reads_ahead(engine))
		e = entries_first_ahead(engine->entries);
	if (!e ||
		(e->example.whole &&
			!help_knows(engine->help, e->slot.fresh,
				e->index == e->slot.index)))
		return false;
	return urgent ? start_urgent(engine, e) : start_ahead(engine, e);
}

void reader_pump(struct engine *engine)
{
	struct reader *reader = &engine->reader;
	bool full;

	if (engine->closing)
		return;
	while (!engine->stopped && !engine->alone && reader->free &&
		reader->busy < reader->allowed && start_next(engine))
		;
	full = reader->busy >= reader->allowed &&
		(entries_first_urgent(engine->entries) || reads_ahead(engine));
	if (full && !reader->full) {
		reader->burst = (struct auto_burst){0};
		meter_burst(engine->meter);
	}
	reader->full = full;
}

/* SPDX-License-Identifier: MIT */
/*
 * Distributes memory when there is little. These are given up in turn: reading
 * ahead (reader_next.c), keeping decoded examples (their files are kept
 * instead), keeping files. If decoding finds no room, data not needed soon is
 * dropped. If that is not enough, one worker is `alone`: nothing is read or
 * begun until it has its memory, and all other data that was read is dropped
 * for it. So the oldest batch completes with any budget that holds one file and
 * its region at a time. Nothing is dropped for an image that would not fit even
 * then. Under the loader's lock.
 */
#include <errno.h>

#include "engine/make_impl.h"
#include "mount_help/mount_help.h"

#define SCRATCH_KEPT_MAX ((size_t)4 << 20)

uint32_t room_ahead(const struct engine *engine)
{
	uint64_t file = meter_file_mean(engine->meter), room;

	/* No bursts are needed. */
	if (help_plans(engine->help))
		return engine->s.c.reads_ahead;
	/* Asked at each turn of a worker. */
	if (!file || engine->s.ahead_least == engine->s.ahead_max)
		return engine->s.ahead_max;
	room = engine->memory_share / 4 / file;
	if (room < engine->s.ahead_least)
		return engine->s.ahead_least;
	return room < engine->s.ahead_max ? (uint32_t)room
					  : engine->s.ahead_max;
}

/* The memory they may take before other uses give way. */
static uint64_t ahead_bytes(const struct engine *engine)
{
	uint64_t bytes = room_ahead(engine) * meter_file_mean(engine->meter);

	return bytes < engine->memory_share / 4 ? bytes
						: engine->memory_share / 4;
}

void room_count_kept(struct engine *engine, uint64_t cost)
{
	struct refrain_stats *stats = meter_stats(engine->meter);

	entries_keep(engine->entries, cost);
	if (entries_kept_bytes(engine->entries) > stats->pool_bytes_peak)
		stats->pool_bytes_peak = entries_kept_bytes(engine->entries);
}

/*
 * Decoded examples may take what encoded ones will not need: all that can be
 * outstanding or read ahead, less those that are kept decoded. Where a decoded
 * one is the smaller, as of a small crop, those outstanding are kept so, too.
 */
struct buffer *room_to_keep(struct engine *engine, size_t bytes)
{
	uint64_t cost = memory_cost(bytes);
	uint64_t file = meter_file_mean(engine->meter);
	uint64_t reserve = engine->memory_share / 8 + ahead_bytes(engine);
	struct buffer *b;

	if (engine->outstanding_max > entries_kept(engine->entries))
		reserve += (engine->outstanding_max -
				   entries_kept(engine->entries)) *
			(cost < file ? cost : file);
	if (entries_kept_bytes(engine->entries) + cost + reserve >
		engine->memory_share)
		return NULL;
	b = memory_get(&engine->memory, bytes);
	if (!b)
		return NULL;
	room_count_kept(engine, cost);
	return b;
}

bool room_for_encoded(const struct engine *engine)
{
	return memory_room(&engine->memory) >= ahead_bytes(engine);
}

bool room_alone(const struct engine *engine, uint64_t bytes)
{
	return engine->workers_bytes + bytes <= engine->memory_alone;
}

/* Else nothing is to be dropped for it. */
static bool may_fit(const struct make *m)
{
	uint64_t bytes =
		m->layout.extra_bytes + memory_cost(m->e->encoded->bytes);

	if (m->keep)
		bytes += memory_cost(m->keep->bytes);
	else if (m->layout.bytes)
		bytes += memory_cost(m->layout.bytes);
	return room_alone(m->w->engine, bytes);
}

static bool try_to_work(struct make *m)
{
	struct memory *memory = &m->w->engine->memory;
	struct worker *w = m->w;
	size_t bytes = m->keep ? 0 : m->layout.bytes;

	if (w->scratch && w->scratch->bytes < bytes) {
		memory_put(memory, w->scratch);
		w->scratch = NULL;
	}
	if (!memory_charge(memory, m->layout.extra_bytes))
		return false;
	if (bytes && !w->scratch)
		w->scratch = memory_get(memory, bytes);
	if (!bytes || w->scratch)
		return true;
	memory_uncharge(memory, m->layout.extra_bytes);
	return false;
}

/* Scratch memory of those who do not work. */
static bool reclaim_scratch(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->threads; i++) {
		struct worker *w = &engine->workers[i];

		if (w->busy || !w->scratch)
			continue;
		memory_put(&engine->memory, w->scratch);
		w->scratch = NULL;
		return true;
	}
	return false;
}

static int work_alone(struct make *m)
{
	struct engine *engine = m->w->engine;

	engine->alone = m->w;
	while (!try_to_work(m)) {
		if (engine->closing)
			return -ECANCELED;
		if (entries_reclaim(engine) || entries_reclaim_queued(engine) ||
			reclaim_scratch(engine))
			continue;
		if (engine->working <= 1 && !engine->reader.reading)
			return -E2BIG;
		turn_wait(&engine->turn, TURN_ALONE);
	}
	return 0;
}

int room_to_work(struct make *m)
{
	struct engine *engine = m->w->engine;

	while (!try_to_work(m)) {
		if (!may_fit(m))
			return -E2BIG;
		if (engine->alone && engine->alone != m->w)
			return -EAGAIN;
		if (!entries_reclaim(engine))
			return work_alone(m);
	}
	return 0;
}

void room_done(struct make *m)
{
	struct worker *w = m->w;
	struct engine *engine = w->engine;

	memory_uncharge(&engine->memory, m->layout.extra_bytes);
	m->layout.extra_bytes = 0;
	if (w->scratch && w->scratch->bytes > SCRATCH_KEPT_MAX) {
		memory_put(&engine->memory, w->scratch);
		w->scratch = NULL;
	}
}

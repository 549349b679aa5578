/* SPDX-License-Identifier: MIT */
/*
 * Who gets memory when there is little. In this order less is held: less is
 * read ahead (reader_next.c); decoded examples are not kept, their files are;
 * files are not kept. When decoding itself finds no room, what is not needed
 * soon is dropped; then one worker is `alone`: nothing is read or begun until
 * it has what it needs, and everything else that was read is dropped for it. So
 * the oldest batch gets through with any budget that holds one file and its
 * region at a time; for what would not fit even so nothing is dropped. Under
 * the loader's lock.
 */
#include <errno.h>

#include "loader/make_impl.h"
#include "mount_help/mount_help.h"

#define SCRATCH_KEPT_MAX ((size_t)4 << 20)

static uint64_t encoded_mean(const struct refrain_loader *l)
{
	const struct meter *m = &l->meter;

	return m->encoded_count ? m->encoded_sum / m->encoded_count : 0;
}

uint32_t room_ahead(const struct refrain_loader *l)
{
	uint64_t file = encoded_mean(l), room;

	/* No bursts are needed. */
	if (help_plans(l->help))
		return l->s.c.reads_ahead;
	/* Asked at each turn of a worker. */
	if (!file || l->s.ahead_least == l->s.ahead_max)
		return l->s.ahead_max;
	room = l->memory_share / 4 / file;
	if (room < l->s.ahead_least)
		return l->s.ahead_least;
	return room < l->s.ahead_max ? (uint32_t)room : l->s.ahead_max;
}

/* What they may take before something else gives way. */
static uint64_t ahead_bytes(const struct refrain_loader *l)
{
	uint64_t bytes = room_ahead(l) * encoded_mean(l);

	return bytes < l->memory_share / 4 ? bytes : l->memory_share / 4;
}

void room_count_kept(struct refrain_loader *l, uint64_t cost)
{
	l->kept_bytes += cost;
	l->kept_count++;
	if (l->kept_bytes > l->meter.out.pool_bytes_peak)
		l->meter.out.pool_bytes_peak = l->kept_bytes;
}

/*
 * Decoded examples may take what encoded ones will not need: all that can be
 * outstanding or read ahead, less those that are kept decoded. Where a decoded
 * one is the smaller, as of a small crop, those outstanding are kept so, too.
 */
struct buffer *room_to_keep(struct refrain_loader *l, size_t bytes)
{
	uint64_t cost = memory_cost(bytes);
	uint64_t file = encoded_mean(l);
	uint64_t reserve = l->memory_share / 8 + ahead_bytes(l);
	struct buffer *b;

	if (l->outstanding_max > l->kept_count)
		reserve += (l->outstanding_max - l->kept_count) *
			(cost < file ? cost : file);
	if (l->kept_bytes + cost + reserve > l->memory_share)
		return NULL;
	b = memory_get(&l->memory, bytes);
	if (!b)
		return NULL;
	room_count_kept(l, cost);
	return b;
}

bool room_for_encoded(const struct refrain_loader *l)
{
	return memory_room(&l->memory) >= ahead_bytes(l);
}

bool room_alone(const struct refrain_loader *l, uint64_t bytes)
{
	return l->workers_bytes + bytes <= l->memory_alone;
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
	return room_alone(m->w->l, bytes);
}

static bool try_to_work(struct make *m)
{
	struct memory *memory = &m->w->l->memory;
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
static bool reclaim_scratch(struct refrain_loader *l)
{
	for (uint32_t i = 0; i < l->threads; i++) {
		struct worker *w = &l->workers[i];

		if (w->busy || !w->scratch)
			continue;
		memory_put(&l->memory, w->scratch);
		w->scratch = NULL;
		return true;
	}
	return false;
}

static int work_alone(struct make *m)
{
	struct refrain_loader *l = m->w->l;

	l->alone = m->w;
	while (!try_to_work(m)) {
		if (l->closing)
			return -ECANCELED;
		if (entries_reclaim(l) || entries_reclaim_queued(l) ||
			reclaim_scratch(l))
			continue;
		if (l->working <= 1 && !l->reader.reading)
			return -E2BIG;
		turn_wait(&l->turn, TURN_ALONE);
	}
	return 0;
}

int room_to_work(struct make *m)
{
	struct refrain_loader *l = m->w->l;

	while (!try_to_work(m)) {
		if (!may_fit(m))
			return -E2BIG;
		if (l->alone && l->alone != m->w)
			return -EAGAIN;
		if (!entries_reclaim(l))
			return work_alone(m);
	}
	return 0;
}

void room_done(struct make *m)
{
	struct worker *w = m->w;
	struct refrain_loader *l = w->l;

	memory_uncharge(&l->memory, m->layout.extra_bytes);
	m->layout.extra_bytes = 0;
	if (w->scratch && w->scratch->bytes > SCRATCH_KEPT_MAX) {
		memory_put(&l->memory, w->scratch);
		w->scratch = NULL;
	}
}

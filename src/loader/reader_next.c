/* SPDX-License-Identifier: MIT */
/*
 * Which file is read next, and into how much memory. What planned servings wait
 * for comes first; what is read ahead leaves a quarter of the memory alone.
 * Entered by whoever made something wanted or gave something back, under the
 * loader's lock.
 */
#include <errno.h>

#include "base/clock.h"
#include "loader/loader_impl.h"
#include "mount_help/mount_help.h"

#define GUESS_BYTES ((uint64_t)128 << 10)
#define GUESS_LEAST_BYTES ((uint64_t)2 << 10)

static void start(struct refrain_loader *l, struct entry *e, struct buffer *b)
{
	struct reader *reader = &l->reader;
	struct read_op *r = reader->free;
	uint64_t now_ns = l->meter.ticked_ns;

	reader->free = r->next;
	reader->busy++;
	reader->reading++;
	l->meter.out.stages[REFRAIN_STAGE_READ].wait_ns += now_ns - e->since_ns;
	entry_list(l, e, ON_NONE);
	entry_state(l, e, ENTRY_READING);
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
	help_note_start(l->help, e->slot.fresh);
	if (direct_start(l, r))
		return;
	help_note_read(l->help, 0);
	r->unsized = reader->local && e->example.whole && !e->size_hint &&
		!e->example.bytes;
	if (!e->example.whole && e->example.shard < reader->shards_max)
		r->fd = reader->shard_fds[e->example.shard];
	if (r->fd >= 0) {
		r->shared_fd = true;
		reader_read(l, r);
		return;
	}
	reader_open(l, r);
}

/* What files have been like, and a quarter more; no large share of memory. */
static size_t guess(const struct refrain_loader *l)
{
	const struct meter *m = &l->meter;
	uint64_t bytes = GUESS_BYTES, most = l->memory_share / 64;

	if (m->encoded_count)
		bytes = m->encoded_sum / m->encoded_count * 5 / 4;
	if (bytes > most)
		bytes = most;
	return bytes < GUESS_LEAST_BYTES ? GUESS_LEAST_BYTES : bytes;
}

static size_t bytes_needed(
	const struct refrain_loader *l, const struct entry *e)
{
	size_t direct = direct_bytes(l, e);

	if (direct)
		return direct;
	if (!e->example.whole)
		return e->example.bytes + !e->example.bytes;
	if (e->size_hint)
		return e->size_hint;
	/* One more, so that the end is seen in one go. */
	return e->example.bytes ? e->example.bytes + 1 : guess(l);
}

/* Is nothing going on that could make room? */
static bool at_rest(const struct refrain_loader *l)
{
	return !l->working && !l->reader.reading && !l->ready;
}

/* False: later. */
static bool start_urgent(struct refrain_loader *l, struct entry *e)
{
	size_t bytes = bytes_needed(l, e);
	bool fits = room_alone(l, memory_cost(bytes));
	struct buffer *b;

	do
		b = memory_get(&l->memory, bytes);
	while (!b && fits && entries_reclaim(l));
	if (b) {
		start(l, e, b);
		return true;
	}
	if (fits && !at_rest(l))
		return false;
	entry_list(l, e, ON_NONE);
	entry_fail(l, e, -E2BIG, "read", "it is larger than the memory");
	return true;
}

/* What is left alone, so that what is planned does not wait for memory. */
static bool start_ahead(struct refrain_loader *l, struct entry *e)
{
	uint64_t cost = memory_cost(bytes_needed(l, e));
	struct buffer *b = NULL;

	if (cost + l->memory_share / 4 <= memory_room(&l->memory))
		b = memory_get(&l->memory, bytes_needed(l, e));
	if (b)
		start(l, e, b);
	return b != NULL;
}

/*
 * To be timed, reading must be as busy as it can be for a while. When the
 * trainer is slower it would be asked for an example now and then; so what is
 * read ahead is then read in bursts. Between them what is left is enough.
 * A mount with a plan does the timing itself.
 */
static bool reads_ahead(struct refrain_loader *l)
{
	struct reader *reader = &l->reader;

	if (!l->s.measures || help_plans(l->help))
		return !list_empty(&l->ahead);
	if (list_empty(&l->ahead))
		reader->bursting = false;
	else if (l->ahead_count + l->s.c.reads_ahead >= room_ahead(l) ||
		l->planner.read_fresh >= l->planner.fresh_end)
		reader->bursting = true;
	return reader->bursting;
}

/* False: there is nothing more to be read, or no room. */
static bool start_next(struct refrain_loader *l)
{
	bool urgent = !list_empty(&l->urgent);
	struct entry *e;

	if (!urgent && !reads_ahead(l))
		return false;
	e = CONTAINER_OF(
		(urgent ? &l->urgent : &l->ahead)->next, struct entry, node);
	if (e->example.whole &&
		!help_knows(l->help, e->slot.fresh, e->index == e->slot.index))
		return false;
	return urgent ? start_urgent(l, e) : start_ahead(l, e);
}

void reader_pump(struct refrain_loader *l)
{
	struct reader *reader = &l->reader;
	bool full;

	while (!l->closing && !l->stopped && !l->alone && reader->free &&
		reader->busy < reader->allowed && start_next(l))
		;
	full = reader->busy >= reader->allowed &&
		(!list_empty(&l->urgent) || reads_ahead(l));
	if (full && !reader->full) {
		reader->burst = (struct auto_burst){0};
		l->meter.now.bursts++;
	}
	reader->full = full;
}

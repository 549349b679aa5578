/* SPDX-License-Identifier: MIT */
/*
 * Decides to which position of a plan a read belongs. A read belongs to at most
 * one position of each plan: the first one of its file that has not been read
 * yet. It ends only the holds of that position.
 *
 * If the reader of a plan is known, only reads of that process count. If not,
 * these rules apply:
 *
 * Several threads that read in one order are not in step. So a read of a
 * position does not end the positions before it; these are given up when more
 * than `slack` later positions have been read.
 *
 * A read of a file whose position is far ahead comes from another program. The
 * kernel's page cache has the file after that, so the file is not fetched ahead
 * any more. But if there are many such reads in a row, and none near the front,
 * the readers must have moved there.
 *
 * A second read of bytes that were just read does not count: the kernel dropped
 * the pages before the reader used them. But if the next position of the file
 * is near, such a read counts for that position, and the later read of that
 * position for the one after it or for none. So a file is fetched for its
 * reader at most once in an epoch.
 *
 * Any thread may call the functions; the lock of the plans guards all data.
 */
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "mount/plan/plan_impl.h"

/* When threads that read in one order begin an epoch, the previous epoch has at
 * most this many unread positions. */
#define EPOCH_SPREAD 128u

/* The first read of a plan is at most this many positions after the first
 * position. */
#define BEGIN_SPREAD 64u

/* A reader continues a file within this time, and the kernel requests dropped
 * pages again within it. */
#define AGAIN_NS NS_PER_S

/* The kernel requests multiples of this. */
#define PAGE_BYTES UINT64_C(4096)

/* -- Holds by position ----------------------------------------------------- */

static struct list *held_at(const struct plan *plan, uint64_t pos)
{
	struct plans *ps = plan->plans;

	return &ps->held[(pos ^ (uintptr_t)plan >> 6) % HELD_BUCKETS];
}

void hold_enter(struct hold *h)
{
	ASSERT_HELD(&h->plan->plans->lock);
	list_add_tail(held_at(h->plan, h->pos), &h->found);
}

/* Note that the reader of the position begins to read the item at `base`.
 * Returns true if the reader has begun to read this item before. */
static bool tell_hold(struct plan *plan, uint64_t pos, uint64_t base)
{
	struct list *bucket = held_at(plan, pos);
	bool again = false;

	LIST_FOREACH(l, bucket) {
		struct hold *h = CONTAINER_OF(l, struct hold, found);

		if (h->plan == plan && h->pos == pos && h->base == base)
			again = atomic_exchange_explicit(
				&h->p.read, true, memory_order_relaxed);
	}
	return again;
}

/* Note the items that a read begins. Returns true if it starts with an item
 * that was begun before. */
static bool tell_holds(struct plan *plan, uint64_t pos,
	const struct cache_item *file, uint64_t off, size_t len)
{
	struct cache_item item = *file;
	uint64_t at = off;
	bool again = false;

	while (at < off + len) {
		cache_item_at(plan->plans->config.cache, at, &item);
		if (item.base >= off)
			again |= tell_hold(plan, pos, item.base) && at == off;
		at = item.base + item.size;
	}
	return again;
}

/* -- Positions ------------------------------------------------------------- */

/* Handle a read of a file whose position is far ahead: the file need not be
 * fetched any more. */
static void read_astray(struct plan *plan, uint64_t pos)
{
	if (plan->params.reader || pos < plan->cursor ||
		order_epoch_at(&plan->order, pos).number !=
			order_epoch_at(&plan->order, plan->cursor).number)
		return;
	order_set(&plan->order, pos, ORDER_SKIPPED);
	if (plan->stray == 0 || pos < plan->stray_min)
		plan->stray_min = pos;
	if (++plan->stray <= plan->params.slack + PLAN_ITEMS_MAX)
		return;
	/* For a long time all reads were far ahead of the cursor, so the
	 * readers must have moved there. */
	plan->retire_to = plan->stray_min;
	plan->stray = 0;
	plan_advance(plan);
}

static void read_near(struct plan *plan, uint64_t pos)
{
	plan_count_used(plan, pos);
	plan->stray = 0;
	plan->s.read++;
	if (pos >= plan->front)
		plan->front = pos + 1;
	if (pos >= plan->base) {
		order_set(&plan->order, pos, ORDER_SERVED | ORDER_COUNTED);
		plan->ahead++;
	} else {
		order_set(&plan->order, pos, ORDER_SERVED);
	}
	plan_advance(plan);
}

/* Is so little of the epoch left that its readers may read the next one? */
static bool epoch_is_near(const struct plan *plan, uint64_t pos)
{
	uint64_t begin = order_epoch_at(&plan->order, pos).begin;
	uint64_t left = begin > plan->base ? begin - plan->base : 0;
	uint64_t most = plan->params.slack < EPOCH_SPREAD ? plan->params.slack
							  : EPOCH_SPREAD;

	return plan->front > begin || left <= plan->ahead + most;
}

/* May a reader of the plan have come to the position? */
static bool is_near(const struct plan *plan, uint64_t pos, bool taken)
{
	uint64_t at = plan->front > plan->base ? plan->front : plan->base;

	if (pos >= at + 2 * plan->params.slack)
		return false;
	if (plan->params.reader)
		return true;
	if (taken && plan->front == 0 && pos >= BEGIN_SPREAD)
		return false;
	return epoch_is_near(plan, pos);
}

/* May the reader of the previous position have come to this one? See
 * plan_params.spread. */
static bool is_next(const struct plan *plan, uint64_t pos)
{
	uint64_t at = plan->front > plan->base ? plan->front : plan->base;

	return pos < at + plan->params.spread;
}

static bool is_reader(const struct plan *plan, pid_t pid)
{
	return !plan->params.reader || !pid || plan->params.reader == pid;
}

/* A read, and the result: how the read relates to the plans. */
struct note {
	const struct cache_item *file;
	uint64_t off;
	size_t len;
	pid_t pid;
	enum plans_turn turn;
	struct plans_read more;
};

/* Does this read count as reading the position? A file of one item counts as
 * read at its first byte, a larger file at its last byte. */
static bool reads_position(const struct note *n)
{
	uint64_t size = n->file->version.size_bytes;

	return n->file->size == size ? n->off == 0 : n->off + n->len >= size;
}

static bool is_whole_file(const struct note *n)
{
	return n->file->size == n->file->version.size_bytes;
}

/* Set the turn of a read. If several plans have positions for it, the most
 * urgent turn counts. */
static void set_turn(const struct plan *plan, struct note *n, uint64_t pos,
	bool again, size_t again_bytes)
{
	bool now = n->turn == PLANS_NOW || n->turn == PLANS_NOW_AGAIN ||
		pace_waits(plan, pos);

	if (n->turn == PLANS_NONE || again_bytes < n->more.again_bytes)
		n->more.again_bytes = again_bytes;
	again &= n->turn != PLANS_NOW && n->turn != PLANS_LATER;
	if (again)
		n->turn = now ? PLANS_NOW_AGAIN : PLANS_LATER_AGAIN;
	else
		n->turn = now ? PLANS_NOW : PLANS_LATER;
}

static struct plan_turn *turn_of(struct plan *plan, const struct note *n)
{
	return &plan->turn[n->file->cookie % PLAN_TURNS];
}

static bool is_own_read(const struct plan *plan, const struct note *n)
{
	return n->pid && plan->params.reader == n->pid;
}

/* Returns the last read of the beginning of the file, if this read may continue
 * it: it was a moment ago, or the plan's own reader reads on. Otherwise returns
 * NULL. */
static struct plan_turn *last_turn(struct plan *plan, const struct note *n)
{
	struct plan_turn *t = turn_of(plan, n);
	bool goes_on = n->off > 0 && is_own_read(plan, n);

	return t->file_1 == (uint32_t)n->file->cookie + 1 &&
			(goes_on || clock_now_ns() < t->at_ns + AGAIN_NS)
		? t
		: NULL;
}

/* Note which bytes of the file a read covers. Returns how many of them were
 * read before. A 64th of the file is noted only if a single read covers all of
 * it, so the result may be too low for a large file. */
static size_t mark_read(struct plan_turn *t, const struct note *n)
{
	uint64_t size = n->file->size, again = 0;
	uint64_t unit = ((size - 1) / (64 * PAGE_BYTES) + 1) * PAGE_BYTES;

	for (uint64_t i = (n->off + unit - 1) / unit; i * unit < size; i++) {
		uint64_t end = (i + 1) * unit < size ? (i + 1) * unit : size;

		if (end > n->off + n->len)
			break;
		if (t->read & UINT64_C(1) << i)
			again += end - i * unit;
		t->read |= UINT64_C(1) << i;
	}
	return (size_t)again;
}

static void keep_turn(
	struct plan *plan, const struct note *n, uint64_t pos, bool ours)
{
	struct plan_turn *t = turn_of(plan, n);

	*t = (struct plan_turn){
		.file_1 = (uint32_t)n->file->cookie + 1,
		.ours = ours,
		.pos = pos,
		.at_ns = clock_now_ns(),
		.read_to = n->len,
	};
	(void)mark_read(t, n); /* no byte was read before */
}

/* Note that the reader of a file of several items reads on. The kernel may send
 * a few reads out of order. So if this read leaves a gap, the reads of the gap
 * will follow, and all bytes up to the end of this read count as read. */
static void extend_turn(struct plan *plan, const struct note *n, uint64_t pos)
{
	struct plan_turn *t = last_turn(plan, n);
	uint64_t end = n->off + n->len;

	if (t && t->ours && t->pos == pos && end > t->read_to &&
		n->off <= t->read_to + CACHE_READ_MAX_BYTES)
		t->read_to = end;
}

/* Does the read continue a file of one item? Then it belongs to the reader that
 * began the file. A read by the plan's own reader that is not at the beginning
 * of the file always continues. */
static bool goes_on(struct plan *plan, struct note *n)
{
	struct plan_turn *t = last_turn(plan, n);
	bool own = is_own_read(plan, n);

	if (n->off == 0 || !is_whole_file(n) || (!own && !t))
		return false;
	if (t && t->ours)
		set_turn(plan, n, t->pos, true, mark_read(t, n));
	else if (own && n->turn == PLANS_NONE)
		n->turn = PLANS_LATER;
	return true;
}

/* Does this read repeat one for pages that the kernel had dropped? */
static bool asks_again(struct plan *plan, const struct note *n)
{
	const struct plan_turn *t = last_turn(plan, n);

	return n->off == 0 && is_whole_file(n) && t && t->ours;
}

/* Returns the position before which skipped positions are finished: either
 * their items were read from a tier, or they will not be read. */
static uint64_t horizon(const struct plan *plan)
{
	uint64_t slack = plan->params.slack;

	if (plan->params.reader)
		return plan->retire_to;
	return plan->front > slack ? plan->front - slack : 0;
}

static void note(struct plan *plan, struct note *n)
{
	struct plan_turn *t;
	uint64_t pos = 0;
	bool found, near, again;

	if (plan->closing || !is_reader(plan, n->pid))
		return;
	if (goes_on(plan, n))
		return;
	found = order_find(
		&plan->order, (uint32_t)n->file->cookie, horizon(plan), &pos);
	near = found && is_near(plan, pos, n->turn != PLANS_NONE);
	if (asks_again(plan, n) && !(near && is_next(plan, pos))) {
		t = turn_of(plan, n);
		set_turn(plan, n, t->pos, true, mark_read(t, n));
		return;
	}
	if (n->off == 0)
		keep_turn(plan, n, pos, near);
	else if (near)
		extend_turn(plan, n, pos);
	if (near) {
		again = tell_holds(plan, pos, n->file, n->off, n->len);
		set_turn(plan, n, pos, again, again ? n->len : 0);
		n->more.plan_readers += !plan->params.reader;
		if (reads_position(n))
			read_near(plan, pos);
	} else if (found && reads_position(n)) {
		read_astray(plan, pos);
	}
}

/* Must the tiers not admit the file? */
static bool is_barred(const struct plans *ps, uint64_t cookie)
{
	ASSERT_HELD(&ps->lock);
	if (!ps->admitting)
		return false;
	LIST_FOREACH(l, &ps->plans) {
		const struct plan *plan = CONTAINER_OF(l, struct plan, link);

		if (!plan->closing && order_names(&plan->order, cookie))
			return false;
	}
	return true;
}

enum plans_turn plans_note(struct plans *ps, const struct cache_item *item,
	uint64_t off, size_t len, pid_t pid, struct plans_read *more)
{
	struct note n = {item, off, len, pid, PLANS_NONE, {0, 0, false}};

	if (more)
		*more = n.more;
	if (atomic_load_explicit(&ps->active, memory_order_relaxed) == 0)
		return PLANS_NONE;
	LOCK_SCOPE(&ps->lock);
	LIST_FOREACH(l, &ps->plans)
		note(CONTAINER_OF(l, struct plan, link), &n);
	n.more.barred = is_barred(ps, item->cookie);
	if (more)
		*more = n.more;
	return n.turn;
}

bool plans_ask_reader(struct plans *ps)
{
	return atomic_load_explicit(&ps->readers, memory_order_relaxed) > 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The pacer: the thread that follows all plans. It gives up items that will not
 * be read, skips items that are in a tier, and requests the item that is needed
 * first, as long as memory is left for planned items. Only this thread creates
 * and frees holds, so a hold that it has found stays valid. It releases the
 * lock for each call of the cache, because the cache may call back.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "mount/plan/plan_impl.h"

/* The number of positions to look at before the lock is released for other
 * threads. */
#define LOOK_MAX 256u

/* When planned items have used up their memory, the pacer rests until 1 /
 * REST_DIVISOR of it has been freed, or for this time. */
#define REST_NS (5 * NS_PER_MS)
#define REST_DIVISOR 8u
/* The pacer rests this long before a burst that is to be measured; see
 * rate_rest_bytes(). */
#define REST_LONG_NS NS_PER_S

/* Called by the cache at the end of a plan of an item: the item was read, a
 * tier has it, or it could not be fetched. */
static void hold_done(struct cache_plan *p, int status)
{
	struct hold *h = CONTAINER_OF(p, struct hold, p);
	struct plans *ps = h->plan->plans;

	pthread_mutex_lock(&ps->lock);
	h->status = status;
	list_add_tail(&ps->gone, &h->gone);
	ps->freed += h->bytes;
	plans_kick(ps, false);
	if (ps->resting && ps->freed >= ps->rest_bytes)
		pthread_cond_signal(&ps->work_cond);
	pthread_mutex_unlock(&ps->lock);
}

/* -- Positions ------------------------------------------------------------- */

/* One item of the position is not held any more, and it was the last one: set
 * the final state of the position. */
static void settle(struct plan *plan, uint64_t pos, int status)
{
	uint8_t state;

	if (pos < plan->base || pos >= plan->cursor)
		return;
	state = order_state(&plan->order, pos);
	if ((state & ORDER_STATE_MASK) != ORDER_ISSUED)
		return;
	if (status == 1) {
		order_set(&plan->order, pos, ORDER_SERVED | ORDER_COUNTED);
		plan->ahead++;
		plan->s.read++;
	} else if (status == 0) {
		order_set(&plan->order, pos,
			state + ORDER_SKIPPED - ORDER_ISSUED);
	} else {
		order_set(&plan->order, pos, ORDER_RETIRED);
	}
	plan_advance(plan);
}

/* Note that a tier has the item and nobody has read it yet. */
static void note_unread(struct plan *plan, uint64_t pos)
{
	uint8_t state = order_state(&plan->order, pos);

	if (state / ORDER_UNREAD < UINT8_MAX / ORDER_UNREAD)
		order_set(&plan->order, pos, state + ORDER_UNREAD);
	if ((state & ORDER_STATE_MASK) == ORDER_SERVED)
		plan_count_used(plan, pos);
}

static bool is_of(const struct plan *plan, struct list *l, uint64_t pos)
{
	return l != &plan->holds &&
		CONTAINER_OF(l, struct hold, link)->pos == pos;
}

/* Count an item that could not be fetched. `last`: it was the last held item of
 * its position, so if the file has changed, count the position as gone, too. */
static void note_failed(struct hold *h, bool last)
{
	struct plan_status *s = &h->plan->s;

	s->failed++;
	if (h->fetched)
		s->fetched_bytes -= h->bytes;
	else
		s->fetched_items++;
	s->gone += last && h->status == -ESTALE;
}

static void hold_free(struct hold *h)
{
	struct plan *plan = h->plan;
	/* The holds of a position are next to each other in the list. */
	bool last = !is_of(plan, list_prev(&h->link), h->pos) &&
		!is_of(plan, list_next(&h->link), h->pos);

	list_del(&h->link);
	list_del(&h->found);
	plan->plans->nholds--;
	plan->s.ahead_items--;
	plan->s.ahead_bytes -= h->bytes;
	if (h->status == -ECANCELED)
		plan->s.wasted += (order_state(&plan->order, h->pos) &
					  ORDER_STATE_MASK) != ORDER_SERVED;
	else if (h->status < 0)
		note_failed(h, last);
	if (h->status == 0 && h->p.unread)
		note_unread(plan, h->pos);
	if (last)
		settle(plan, h->pos, h->status);
	free(h);
}

static void reap(struct plans *ps)
{
	while (!list_empty(&ps->gone)) {
		struct hold *h = LIST_FIRST(&ps->gone, struct hold, gone);

		list_del(&h->gone);
		hold_free(h);
	}
}

/* -- Giving up ------------------------------------------------------------- */

static bool is_past(const struct plan *plan, const struct hold *h)
{
	return plan->closing || h->pos < plan->retire_to ||
		h->pos + plan->params.slack < plan->base ||
		(order_state(&plan->order, h->pos) & ORDER_STATE_MASK) ==
		ORDER_RETIRED;
}

static struct hold *find_past(const struct plan *plan)
{
	LIST_FOREACH(l, &plan->holds) {
		struct hold *h = CONTAINER_OF(l, struct hold, link);

		if (h->pos >= plan->base && !plan->closing)
			return NULL;
		if (!h->given_up && is_past(plan, h))
			return h;
	}
	return NULL;
}

/* Give up one hold whose position will not be read any more. Returns false if
 * there was none. Otherwise the lock was released in the meantime. */
static bool give_up_one(struct plans *ps)
{
	ASSERT_HELD(&ps->lock);
	LIST_FOREACH(l, &ps->plans) {
		struct hold *h = find_past(CONTAINER_OF(l, struct plan, link));
		bool used;

		if (!h)
			continue;
		h->given_up = true;
		used = !h->plan->closing && h->pos < h->plan->retire_to;
		pthread_mutex_unlock(&ps->lock);
		cache_unplan(ps->config.cache, &h->p, used);
		pthread_mutex_lock(&ps->lock);
		return true;
	}
	return false;
}

static void bury(struct plans *ps)
{
	LIST_FOREACH_SAFE(l, next, &ps->plans) {
		struct plan *plan = CONTAINER_OF(l, struct plan, link);

		if (!plan->closing || !list_empty(&plan->holds))
			continue;
		list_del(&plan->link);
		order_release(&plan->order);
		free(plan);
	}
}

/* -- Fetching ahead -------------------------------------------------------- */

enum plan_look {
	LOOK_ITEM, /* the item at the cursor has to be fetched */
	LOOK_END,
	LOOK_MORE, /* there are more positions to look at */
};

static void next_position(struct plan *plan)
{
	uint64_t pos = plan->cursor++;
	bool held = !list_empty(&plan->holds) &&
		is_of(plan, list_prev(&plan->holds), pos);
	uint8_t state = order_state(&plan->order, pos) & ORDER_STATE_MASK;

	plan->cursor_off = 0;
	if (state == ORDER_WAITING) {
		order_set(&plan->order, pos, ORDER_SKIPPED);
		plan->looked++;
		plan->s.resident++;
		plan_advance(plan);
	} else if (!held) {
		settle(plan, pos, 0);
	}
}

/* Does the position at the cursor, or the rest of it, have to be fetched? */
static bool is_open(const struct plan *plan)
{
	uint8_t state =
		order_state(&plan->order, plan->cursor) & ORDER_STATE_MASK;

	return state == ORDER_WAITING ||
		(state == ORDER_ISSUED && plan->cursor_off > 0);
}

/* Has the reader of the position at the cursor read this item already? The
 * state of the position changes only when all its items have been read. */
static bool was_read(const struct plan *plan, const struct cache_item *item)
{
	const struct plan_turn *t = &plan->turn[item->cookie % PLAN_TURNS];

	return t->file_1 == (uint32_t)item->cookie + 1 && t->ours &&
		t->pos == plan->cursor && item->base + item->size <= t->read_to;
}

static enum plan_look look_at_next(struct plan *plan, struct cache_item *item)
{
	const struct plans_config *config = &plan->plans->config;

	for (unsigned i = 0; i < LOOK_MAX; i++) {
		if (plan->cursor >= plan->order.end)
			return LOOK_END;
		if (!is_open(plan)) {
			next_position(plan);
			continue;
		}
		if (!config->file(config->arg,
			    order_file(&plan->order, plan->cursor), item)) {
			plan->s.gone++;
			order_set(&plan->order, plan->cursor, ORDER_RETIRED);
			next_position(plan);
			plan_advance(plan);
			continue;
		}
		if (plan->cursor_off >= item->version.size_bytes) {
			next_position(plan);
			continue;
		}
		cache_item_at(config->cache, plan->cursor_off, item);
		if (!was_read(plan, item) &&
			!cache_resident(config->cache, item))
			return LOOK_ITEM;
		plan->cursor_off = item->base + item->size;
	}
	return LOOK_MORE;
}

/* Move the cursor to the next item of the file, or to the next position. */
static void pass_item(struct plan *plan, const struct cache_item *item)
{
	plan->cursor_off = item->base + item->size;
	if (plan->cursor_off >= item->version.size_bytes)
		next_position(plan);
}

/* Plan the item at the cursor. Returns 0; -EAGAIN if planned items have all
 * memory that they may have; or another -errno. */
static int issue(struct plan *plan, const struct cache_item *item)
{
	struct plans *ps = plan->plans;
	struct hold *h = calloc(1, sizeof(*h));
	uint64_t pos = plan->cursor;
	int rc = -EAGAIN;

	if (!h)
		return rc;
	h->plan = plan;
	h->pos = pos;
	h->base = item->base;
	h->bytes = item->size;
	h->looked = plan->looked;
	h->missing_bytes = plan->missing_bytes;
	h->p.done = hold_done;
	h->p.owner = plan;
	h->p.backlog = &plan->backlog;
	pace_hold(h, clock_now_ns());
	list_init(&h->gone);
	list_add_tail(&plan->holds, &h->link);
	ps->nholds++;
	plan->s.ahead_items++;
	plan->s.ahead_bytes += h->bytes;
	hold_enter(h);
	pthread_mutex_unlock(&ps->lock);
	rc = cache_plan(ps->config.cache, item, &h->p);
	pthread_mutex_lock(&ps->lock);
	if (rc == 0) {
		h->fetched = true;
		plan->s.fetched_items++;
		plan->s.fetched_bytes += h->bytes;
		plan->missing_bytes += h->p.missing_bytes;
	}
	/* The position may have been read while the lock was released. */
	if (rc != -EAGAIN && plan->cursor == pos) {
		if ((order_state(&plan->order, pos) & ORDER_STATE_MASK) ==
			ORDER_WAITING) {
			order_set(&plan->order, pos, ORDER_ISSUED);
			plan->looked += rc == 0;
		}
		pass_item(plan, item);
	}
	if (rc < 0) {
		h->status = rc == -EEXIST ? 0
			: rc == -EALREADY ? 1
			: rc == -EAGAIN	  ? 0
					  : rc;
		hold_free(h);
	}
	return rc;
}

enum issue_step {
	STEP_AGAIN,
	STEP_FULL, /* planned items have all memory that they may have */
	STEP_IDLE,
};

/* Is the item of `plan` needed before that of `other`? If both are needed at
 * the same time, the plan that holds fewer bytes comes first. */
static bool is_before(const struct plan *plan, uint64_t due_ns,
	const struct plan *other, uint64_t other_ns)
{
	if (!other || due_ns != other_ns)
		return !other || due_ns < other_ns;
	return plan->s.ahead_bytes < other->s.ahead_bytes;
}

/* Plan the item that is needed first, of all plans. */
static enum issue_step issue_one(struct plans *ps)
{
	struct cache_item item, best_item;
	struct plan *best = NULL;
	uint64_t due_ns, best_ns = 0, now_ns = clock_now_ns();
	bool more = false;

	LIST_FOREACH(l, &ps->plans) {
		struct plan *plan = CONTAINER_OF(l, struct plan, link);
		enum plan_look found;

		if (plan->closing)
			continue;
		pace_measure(plan, now_ns);
		found = look_at_next(plan, &item);
		more |= found == LOOK_MORE;
		if (found != LOOK_ITEM)
			continue;
		due_ns = ps->nplans > 1 ? pace_due_ns(plan) : 0;
		if (!is_before(plan, due_ns, best, best_ns))
			continue;
		best = plan;
		best_ns = due_ns;
		best_item = item;
	}
	if (!best)
		return more ? STEP_AGAIN : STEP_IDLE;
	if (ps->nholds >= PLAN_ITEMS_MAX)
		return STEP_FULL;
	return issue(best, &best_item) == -EAGAIN ? STEP_FULL : STEP_AGAIN;
}

/* Wait until enough memory has been freed, or for the time to rest. */
static void rest(struct plans *ps)
{
	uint64_t long_bytes = rate_rest_bytes(ps), until = clock_now_ns();

	until += long_bytes ? REST_LONG_NS : REST_NS;
	ps->rest_bytes = ps->window_bytes / REST_DIVISOR;
	if (long_bytes)
		ps->rest_bytes = long_bytes;
	ps->resting = true;
	while (!ps->urgent && ps->freed < ps->rest_bytes &&
		cond_wait_until(&ps->work_cond, &ps->lock, until))
		;
	ps->resting = false;
}

/* Wait for work. If planned items have used up their memory, wait until the
 * memory for several items is free, so that the pacer does not wake up after
 * each item that is read. */
static void plan_wait_for_work(struct plans *ps, bool full)
{
	ps->full = full;
	while (!ps->work)
		pthread_cond_wait(&ps->work_cond, &ps->lock);
	if (full && !ps->urgent)
		rest(ps);
}

void *follow_main(void *arg)
{
	struct plans *ps = OBJECT(plans, arg);
	enum issue_step step;

	pthread_mutex_lock(&ps->lock);
	for (;;) {
		ps->work = ps->urgent = false;
		ps->freed = 0;
		reap(ps);
		if (give_up_one(ps))
			continue;
		bury(ps);
		if (ps->stopping && list_empty(&ps->plans))
			break;
		step = issue_one(ps);
		if (step != STEP_AGAIN)
			plan_wait_for_work(ps, step == STEP_FULL);
	}
	pthread_mutex_unlock(&ps->lock);
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests to the origin: which goes next, how many are out, what becomes of
 * the answer. Three queues, demand first; within one, fills take turns, so
 * that many readers of a slow origin all make progress, but what is planned
 * comes in the order of the plans. Runs with the cache's
 * lock held on any thread; answers come on the origin's threads.
 */
#include "cache/fill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/part.h"

/* Hung requests beyond this count against the depth again. */
#define SLOW_MAX 1024u

static void mark(struct fill *f, unsigned first, unsigned n, enum page_state s)
{
	for (unsigned i = first; i < first + n; i++)
		f->page[i] = (uint8_t)((f->page[i] & ~PAGE_STATE_MASK) | s);
}

/* A good answer: the pages are there; tell who waits for them. */
static void fetch_arrived(struct fetch *x, struct after *a)
{
	struct counters *counters = x->c->config.counters;
	struct fill *f = x->f;

	COUNT(counters, origin_reads);
	COUNT_ADD(counters, origin_bytes, x->r.len);
	mark(f, x->first, x->n, PAGE_PRESENT);
	f->present += x->n;
	if (f->phase == FILL_GONE)
		return;
	if (f->present == f->npages)
		fill_complete(x->c, f, a);
	fill_answer(x->c, f, a);
}

static void fetch_forget(struct fetch *x)
{
	struct cache *c = x->c;

	list_del(&x->link);
	c->nsurplus -= x->surplus;
	if (x->slow)
		c->nslow--;
	else
		c->ninflight--;
	if (c->ninflight + c->nslow == 0)
		pthread_cond_broadcast(&c->idle_cond);
}

static void fetch_done(struct origin_read *r, int status, const void *data)
{
	struct fetch *x = CONTAINER_OF(r, struct fetch, r);
	struct cache *c = x->c;
	struct fill *f = x->f;
	struct after a;

	after_init(&a);
	/* INFLIGHT pages belong to this request: no lock for the copy. */
	if (status > 0)
		memcpy(f->buf + (size_t)x->first * FILL_PAGE_BYTES, data,
			x->r.len);
	pthread_mutex_lock(&c->lock);
	/* Also what readers got: they share one origin, and more surplus that
	 * only takes their part of it is no gain. */
	depth_note(&c->surplus, status > 0 ? x->r.len : 0,
		c->nsurplus >= depth_limit(&c->surplus), clock_now_ns());
	fetch_forget(x);
	if (status > 0)
		fetch_arrived(x, &a);
	else if (c->stopping && status != -ESTALE)
		mark(f, x->first, x->n, PAGE_ABSENT);
	else if (f->phase != FILL_GONE)
		fill_fail(c, f, status, &a);
	fill_unref(c, f);
	free(x);
	cache_unlock(c, &a);
}

/* The next run of wanted pages, from the cursor on, round to it again. */
static void next_run(struct fill *f, unsigned *first, unsigned *n)
{
	unsigned max = (unsigned)(FETCH_MAX_BYTES / FILL_PAGE_BYTES);
	unsigned i = f->cursor;

	while ((f->page[i] & PAGE_STATE_MASK) != PAGE_WANTED)
		i = i + 1 < f->npages ? i + 1 : 0;
	*first = i;
	while (i < f->npages && i - *first < max &&
		(f->page[i] & PAGE_STATE_MASK) == PAGE_WANTED)
		i++;
	*n = i - *first;
	f->cursor = i < f->npages ? i : 0;
}

static int fetch_start(struct cache *c, struct fill *f, struct after *a)
{
	struct fetch *x = calloc(1, sizeof(*x));
	uint64_t off;

	if (x && !f->file)
		f->file = origin_file_new(c->config.origin, f->path);
	if (!x || !f->file) {
		free(x);
		return -ENOMEM;
	}
	next_run(f, &x->first, &x->n);
	mark(f, x->first, x->n, PAGE_INFLIGHT);
	f->wanted -= x->n;
	off = (uint64_t)x->first * FILL_PAGE_BYTES;
	x->c = c;
	x->f = f;
	x->started_ns = clock_now_ns();
	x->r.file = f->file;
	x->r.want = f->item.version;
	x->r.off = f->item.base + off;
	x->r.len = (size_t)x->n * FILL_PAGE_BYTES;
	if (off + x->r.len > f->item.size)
		x->r.len = (size_t)(f->item.size - off);
	x->r.done = fetch_done;
	x->surplus = f->prio != PRIO_DEMAND;
	fill_ref(f);
	list_add_tail(&c->inflight, &x->link);
	c->ninflight++;
	c->nsurplus += x->surplus;
	c->nstarting++;
	list_add_tail(&a->starts, &x->start);
	return 0;
}

/* Nobody answers it, or gives it up, before it is the origin's. */
void fetch_run(struct cache *c, struct fetch *x)
{
	list_del(&x->start);
	pthread_mutex_unlock(&c->lock);
	origin_read(c->config.origin, &x->r);
	pthread_mutex_lock(&c->lock);
	if (--c->nstarting == 0 && c->stopping)
		pthread_cond_broadcast(&c->idle_cond);
}

/*
 * Requests that hang must not keep others from the origin: after a while they
 * do not count against the depth any more.
 */
static void set_slow_aside(struct cache *c, uint64_t now_ns)
{
	while (!list_empty(&c->inflight) && c->nslow < SLOW_MAX) {
		struct fetch *x =
			CONTAINER_OF(c->inflight.next, struct fetch, link);

		if (x->started_ns + FETCH_SLOW_NS > now_ns)
			return;
		list_del(&x->link);
		list_add_tail(&c->slow, &x->link);
		x->slow = true;
		c->nsurplus -= x->surplus;
		x->surplus = false;
		c->ninflight--;
		c->nslow++;
	}
}

struct dispatch {
	struct cache *c;
	struct after *after;
	bool surplus; /* the queue at hand is of what nobody waits for */
	bool waiting; /* something is left that could not be started */
	bool no_room; /* somebody waits for memory: nobody overtakes */
};

/* Start one request of a fill. False: it has to wait. */
static bool dispatch_fill(
	struct dispatch *d, struct list *queue, struct fill *f)
{
	struct cache *c = d->c;
	int rc = 0;

	if (f->phase == FILL_MOVING)
		return false;
	if (!f->buf) {
		rc = d->no_room ? -EAGAIN : fill_take_room(c, f);
		if (rc == 0 && part_load(c, f))
			return false;
	}
	if (rc == -EAGAIN) {
		d->no_room = d->waiting = true;
		return false;
	}
	if (rc == 0)
		rc = fetch_start(c, f, d->after);
	if (rc < 0) {
		fill_fail(c, f, rc, d->after);
		return true;
	}
	if (f->wanted > 0 && f->prio == PRIO_PLANNED)
		return true;
	list_del(&f->queue);
	if (f->wanted > 0)
		list_add_tail(queue, &f->queue);
	return true;
}

/*
 * May another request of the fill go out? Half of the depth stays free for
 * readers, and surplus keeps to the fewest that reach the origin's rate, or to
 * one as long as there is time.
 */
static bool may_start(const struct dispatch *d, const struct fill *f)
{
	const struct cache *c = d->c;

	if (!d->surplus)
		return c->ninflight < c->config.depth;
	return c->ninflight < c->config.depth / 2 &&
		c->nsurplus < depth_limit(&c->surplus) &&
		(c->nsurplus == 0 || !planned_early(f, clock_now_ns()));
}

/* Once more when what hangs is not counted. */
static bool may_start_now(struct dispatch *d, const struct fill *f)
{
	if (may_start(d, f))
		return true;
	set_slow_aside(d->c, clock_now_ns());
	if (may_start(d, f))
		return true;
	d->waiting = true;
	return false;
}

/*
 * Start what this queue and the depth allow. Fills that have memory go on
 * even while another waits for room: what they finish makes it.
 */
static void dispatch_queue(struct dispatch *d, struct list *queue)
{
	bool progress = true;

	while (progress && !list_empty(queue)) {
		progress = false;
		LIST_FOREACH_SAFE(l, next, queue) {
			struct fill *f = CONTAINER_OF(l, struct fill, queue);

			if (!may_start_now(d, f))
				return;
			progress |= dispatch_fill(d, queue, f);
		}
	}
}

/* The first of the queue as long as it wants something, then the next. */
static void dispatch_in_order(struct dispatch *d, struct list *queue)
{
	while (!list_empty(queue)) {
		struct fill *f = CONTAINER_OF(queue->next, struct fill, queue);

		if (!may_start_now(d, f) || !dispatch_fill(d, queue, f))
			return;
	}
}

void fetch_dispatch(struct cache *c, struct after *a)
{
	struct dispatch d = {.c = c, .after = a};

	if (c->stopping)
		return;
	for (int prio = PRIO_DEMAND; prio < PRIO_COUNT; prio++) {
		d.surplus = prio != PRIO_DEMAND;
		if (prio == PRIO_PLANNED)
			dispatch_in_order(&d, &c->queue[prio]);
		else
			dispatch_queue(&d, &c->queue[prio]);
	}
	if (d.waiting && !list_empty(&c->inflight)) {
		struct fetch *x =
			CONTAINER_OF(c->inflight.next, struct fetch, link);

		/* Any completion dispatches as well; this is for hung ones. */
		(void)timer_set(c->config.timers, &c->dispatch_timer,
			x->started_ns + FETCH_SLOW_NS);
	}
}

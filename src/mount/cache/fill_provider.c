/* SPDX-License-Identifier: MIT */
/*
 * Providers other than the origin. A fill asks them in order, each for the
 * pages that the providers before it did not have. Each has a depth of its own,
 * so that a slow provider does not delay requests to others.
 *
 * Complete units that came from the origin are pushed to the providers that
 * accept them. They are pushed from the memory of the fill, so the bytes in
 * flight are limited by staging and by the limit of the provider. Runs with the
 * cache's lock held, on any thread.
 */
#include "mount/cache/fill_provider_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "mount/cache/cache_impl.h"

/* 1 / PROVIDER_RESERVE of the depth is reserved for requests with waiting
 * readers. */
#define PROVIDER_RESERVE 4u

static void late_fire(struct timer *t);

void providers_init(struct cache *c)
{
	struct cache_asked *asked = cache_asked(c);

	assert(origin_level(c) <= PROVIDERS_MAX);
	asked->unit_pages = 1;
	for (unsigned i = 0; i < origin_level(c); i++) {
		struct provider *provider = cache_config(c)->provider[i];
		const struct provider_traits *traits = &provider->traits;
		struct cache_provider *cs = &asked->provider[i];

		cs->s = provider;
		assert(traits->depth > 0 &&
			traits->request_bytes >= FILL_PAGE_BYTES &&
			traits->request_bytes >= traits->unit_bytes &&
			traits->unit_bytes % FILL_PAGE_BYTES == 0);
		if (fill_pages(traits->unit_bytes) > asked->unit_pages)
			asked->unit_pages = fill_pages(traits->unit_bytes);
		cs->cache = c;
		list_init(&cs->inflight);
		list_init(&cs->late);
		timer_init(&cs->timer, late_fire);
	}
}

unsigned providers_out(struct cache *c)
{
	ASSERT_INSIDE(c);
	return flight_out(cache_flight(c)) + cache_asked(c)->n +
		cache_asked(c)->npushing;
}

void providers_tell_idle(struct cache *c)
{
	if (providers_out(c) == 0)
		jobs_wake(c);
}

/* -- May a provider be asked? ---------------------------------------------- */

bool provider_may_ask(struct cache *c, unsigned level, bool surplus)
{
	const struct cache_provider *cs = &cache_asked(c)->provider[level];
	unsigned depth = cs->s->traits.depth;

	ASSERT_INSIDE(c);
	return cs->nasked < depth - (surplus ? depth / PROVIDER_RESERVE : 0);
}

size_t provider_request_bytes(struct cache *c, unsigned level)
{
	size_t bytes = cache_asked(c)->provider[level].s->traits.request_bytes;
	size_t unit = cache_unit_pages(c, false) * FILL_PAGE_BYTES;

	ASSERT_INSIDE(c);
	return bytes < unit ? bytes / FILL_PAGE_BYTES * FILL_PAGE_BYTES
			    : bytes / unit * unit;
}

/* -- Requests -------------------------------------------------------------- */

static void arm_late(struct cache *c, struct cache_provider *cs)
{
	const struct fetch *x;

	if (jobs_is_stopping(c) || list_empty(&cs->inflight))
		return;
	x = LIST_FIRST(&cs->inflight, struct fetch, out.link);
	timer_set(cache_config(c)->timers, &cs->timer,
		x->out.started_ns + cs->s->traits.patience_ns);
}

void provider_ask(struct cache *c, struct fetch *x)
{
	struct cache_provider *cs = &cache_asked(c)->provider[x->level];
	bool first = list_empty(&cs->inflight);

	ASSERT_INSIDE(c);
	fill_describe(x->span[0].f, &x->s.item);
	x->s.off = x->r.off - x->s.item.base;
	x->s.len = x->r.len;
	atomic_init(&x->s.urgent, fill_is_demand(x->span[0].f));
	list_add_tail(&cs->inflight, &x->out.link);
	cs->nasked++;
	cs->counts.asked++;
	cache_asked(c)->n++;
	if (first)
		arm_late(c, cs);
}

void provider_read(struct cache *c, struct fetch *x)
{
	struct provider *s = cache_asked(c)->provider[x->level].s;

	s->ops->read(s, &x->s);
}

void providers_hurry(struct cache *c, const struct fill *f)
{
	ASSERT_INSIDE(c);
	for (unsigned i = 0; i < origin_level(c); i++)
		LIST_FOREACH(l, &cache_asked(c)->provider[i].inflight) {
			struct fetch *x =
				CONTAINER_OF(l, struct fetch, out.link);

			if (x->span[0].f == f)
				atomic_store_explicit(&x->s.urgent, true,
					memory_order_relaxed);
		}
}

void provider_forget(struct cache *c, struct fetch *x)
{
	ASSERT_INSIDE(c);
	cache_asked(c)->provider[x->level].nasked -= !x->late;
	list_del(&x->out.link);
	cache_asked(c)->n--;
}

void provider_count(struct cache *c, const struct fetch *x, int status)
{
	struct cache_provider_counts *n =
		&cache_asked(c)->provider[x->level].counts;

	ASSERT_INSIDE(c);
	n->bytes += x->got;
	if (status == 0)
		n->hits++;
	else if (x->late)
		n->late++;
	else if (status == -ENOENT)
		n->misses++;
	else if (status == -ESTALE)
		n->stale++;
	else if (status != -ECANCELED)
		n->failed++;
}

/* -- Giving up requests ---------------------------------------------------- */

struct fill *abandon_run(struct cache *c, struct list *link)
{
	struct fetch *x = CONTAINER_OF(link, struct fetch, start);

	if (x->level == origin_level(c)) {
		origin_read_abandon(cache_config(c)->origin, &x->r);
	} else {
		struct provider *s = cache_asked(c)->provider[x->level].s;

		s->ops->abandon(s, &x->s);
	}
	jobs_lock(c);
	fetch_put(x);
	jobs_unlock(c);
	return NULL;
}

/* Take a reference, because the request may be answered before abandon()
 * returns. */
static void abandon_later(struct fetch *x, struct after *a)
{
	ASSERT_INSIDE(x->c);
	x->refs++;
	list_add_tail(&a->list[AFTER_ABANDON], &x->start);
}

static void abandon_flight(struct flight_request *q, void *arg)
{
	abandon_later(CONTAINER_OF(q, struct fetch, out), arg);
}

void providers_abandon(struct cache *c, struct after *a)
{
	ASSERT_INSIDE(c);
	flight_each(cache_flight(c), abandon_flight, a);
	for (unsigned i = 0; i < origin_level(c); i++)
		LIST_FOREACH(l, &cache_asked(c)->provider[i].inflight)
			abandon_later(
				CONTAINER_OF(l, struct fetch, out.link), a);
}

/* Give up requests that take too long. When the provider has ended such a
 * request, the next provider is asked for its pages. */
static void give_up_late(
	struct cache_provider *cs, uint64_t now_ns, struct after *a)
{
	LIST_FOREACH_SAFE(l, next, &cs->inflight) {
		struct fetch *x = CONTAINER_OF(l, struct fetch, out.link);

		if (x->out.started_ns + cs->s->traits.patience_ns > now_ns)
			return;
		list_del(&x->out.link);
		list_add_tail(&cs->late, &x->out.link);
		x->late = true;
		cs->nasked--;
		abandon_later(x, a);
	}
}

/* Give up late requests. Wait if some have not been handed to their provider
 * yet, because a provider can only give up requests that it has. */
static void look_for_late(struct cache_provider *cs, struct after *a)
{
	struct cache *c = cs->cache;
	uint64_t now_ns = clock_now_ns();

	if (jobs_is_starting(c)) {
		timer_set(cache_config(c)->timers, &cs->timer,
			now_ns + NS_PER_MS);
		return;
	}
	give_up_late(cs, now_ns, a);
	arm_late(c, cs);
}

static void late_fire(struct timer *t)
{
	struct cache_provider *cs =
		CONTAINER_OF(t, struct cache_provider, timer);
	struct after a;

	jobs_enter(cs->cache, &a);
	/* Once cache_stop() has begun, it gives up all requests itself. */
	if (!jobs_is_stopping(cs->cache))
		look_for_late(cs, &a);
	jobs_run(cs->cache, &a);
}

/* -- Pushes ---------------------------------------------------------------- */

static void push_done(struct provider_push *sp, int status)
{
	struct push *p = CONTAINER_OF(sp, struct push, p);
	struct cache *c = p->to->cache;
	struct after a;

	jobs_enter(c, &a);
	p->to->pushing_bytes -= p->p.len;
	if (status == 0)
		p->to->counts.pushed++;
	p->offered(c, p->f, p->decides ? status : 0, &a);
	cache_asked(c)->npushing--;
	providers_tell_idle(c);
	fill_pushed(c, p->f);
	free(p);
	jobs_run(c, &a);
}

static struct push *push_new(
	struct cache_provider *cs, struct fill *f, unsigned first, unsigned n)
{
	size_t len = fill_run_bytes(f, first, n);
	uint64_t bytes = cs->pushing_bytes + len;
	struct push *p = NULL;

	if (bytes <= cs->s->traits.pending_bytes)
		p = calloc(1, sizeof(*p));
	if (!p) {
		cs->counts.push_dropped++;
		return NULL;
	}
	cs->pushing_bytes = bytes;
	p->to = cs;
	p->f = f;
	fill_pushing(f);
	fill_describe(f, &p->p.item);
	p->p.off = (uint64_t)first * FILL_PAGE_BYTES;
	p->p.len = len;
	p->p.data = (const char *)f->buf + p->p.off;
	p->p.done = push_done;
	return p;
}

/* Push the units that pages [first, first + n) have completed. */
static void push_units(struct cache *c, struct cache_provider *cs,
	struct fill *f, const struct provider_news *news, struct after *a)
{
	unsigned unit = fill_pages(cs->s->traits.unit_bytes);
	unsigned i = news->first, end = i + news->n, len;

	for (; i < end; i += len) {
		struct push *p = NULL;

		len = fill_unit_at(f, unit, &i);
		if (fill_is_news(c, f, i, len))
			p = push_new(cs, f, i, len);
		if (!p)
			continue;
		p->offered = news->offered;
		p->decides = provider_instead(cs->s);
		if (p->decides)
			fill_offer(f);
		cache_asked(c)->npushing++;
		list_add_tail(&a->list[AFTER_PUSH], &p->link);
	}
}

void providers_push(struct cache *c, struct fill *f,
	const struct provider_news *news, struct after *a)
{
	ASSERT_INSIDE(c);
	for (unsigned i = 0; i < origin_level(c) && !jobs_is_stopping(c); i++)
		if (cache_asked(c)->provider[i].s->ops->push)
			push_units(c, &cache_asked(c)->provider[i], f, news, a);
}

void providers_ended(struct cache *c, const struct fill *f)
{
	struct provider_item item;

	ASSERT_INSIDE(c);
	fill_describe(f, &item);
	for (unsigned i = 0; i < origin_level(c); i++) {
		struct provider *s = cache_asked(c)->provider[i].s;

		if (s->ops->ended)
			s->ops->ended(s, &item);
	}
}

struct fill *push_run(struct cache *c, struct list *link)
{
	struct push *p = CONTAINER_OF(link, struct push, link);
	struct provider *s = p->to->s;

	(void)c;
	s->ops->push(s, &p->p);
	return NULL;
}

/* -- End of the cache ------------------------------------------------------ */

void providers_quiet(struct cache *c)
{
	ASSERT_INSIDE(c);
	for (unsigned i = 0; i < origin_level(c); i++)
		(void)timer_cancel(cache_config(c)->timers,
			&cache_asked(c)->provider[i].timer);
}

void cache_provider_counts(struct cache *c, unsigned provider,
	struct cache_provider_counts *counts)
{
	jobs_lock(c);
	*counts = cache_asked(c)->provider[provider].counts;
	jobs_unlock(c);
}

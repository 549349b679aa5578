/* SPDX-License-Identifier: MIT */
/* Shows the fills and requests of a cache, for `refrain status --debug`. Runs
 * on the thread of a control connection. It holds the cache's lock while it
 * looks at each fill and request once, and copies only the oldest. */
#include "mount/cache/cache_view.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "mount/cache/cache_impl.h"

static const char *const phase_name[] = {
	[FILL_WAITING] = "waiting",
	[FILL_FETCHING] = "fetching",
	[FILL_MOVING] = "moving",
	[FILL_PUBLISHING] = "publishing",
	[FILL_STAGED] = "staged",
	[FILL_GONE] = "gone",
};

static const char *const prio_name[] = {
	[PRIO_DEMAND] = "demand",
	[PRIO_PLANNED] = "planned",
	[PRIO_FILL] = "ahead",
};

/* The oldest elements found so far, oldest first. */
struct oldest {
	struct {
		const void *object;
		uint64_t since_ns;
	} top[CACHE_VIEW_MAX];
	unsigned n;
};

static void note_age(struct oldest *o, const void *object, uint64_t since_ns)
{
	unsigned i = o->n;

	if (i == CACHE_VIEW_MAX && o->top[i - 1].since_ns <= since_ns)
		return;
	if (i < CACHE_VIEW_MAX)
		o->n++;
	else
		i--;
	for (; i > 0 && o->top[i - 1].since_ns > since_ns; i--)
		o->top[i] = o->top[i - 1];
	o->top[i].object = object;
	o->top[i].since_ns = since_ns;
}

static void copy_path(char out[CACHE_VIEW_PATH], const char *path)
{
	size_t len = strlen(path);

	if (len < CACHE_VIEW_PATH)
		(void)snprintf(out, CACHE_VIEW_PATH, "%s", path);
	else
		(void)snprintf(out, CACHE_VIEW_PATH, "...%s",
			path + len - (CACHE_VIEW_PATH - 4));
}

static unsigned pages_inflight(const struct fill *f)
{
	unsigned n = 0, i = 0, run;

	while ((run = fill_run_inflight(f, f->npages, &i)) > 0)
		n += run;
	return n;
}

static void view_one_fill(
	struct fill_view *v, const struct fill *f, uint64_t now)
{
	*v = (struct fill_view){
		.base = f->item.base,
		.size = f->item.size,
		.phase = phase_name[f->phase],
		.priority = prio_name[f->prio],
		.age_ns = now - f->made_ns,
		.pages = f->npages,
		.present = f->present,
		.wanted = f->wanted,
		.inflight = pages_inflight(f),
		.waiters = list_count(&f->waiters),
		.warms = list_count(&f->warms),
		.plans = list_count(&f->plans),
		.tier = fill_has_tier(f),
	};
	copy_path(v->path, f->path);
	if (v->waiters > 0) {
		const struct cache_read *r =
			LIST_FIRST(&f->waiters, struct cache_read, link);

		v->waits_ns = now - r->parked_ns;
		v->wants_off = f->item.base + r->off;
		v->wants_len = r->len;
	}
}

static void view_fills(struct cache *c, struct cache_view *out, uint64_t now)
{
	struct oldest oldest = {.n = 0};

	for (unsigned i = 0; i < CACHE_VIEW_PHASES; i++)
		out->phase[i].name = phase_name[i];
	for (unsigned i = 0; i < CACHE_BUCKETS; i++)
		LIST_FOREACH(l, &cache_table(c)->bucket[i]) {
			const struct fill *f =
				CONTAINER_OF(l, struct fill, bucket);

			out->nfills++;
			out->phase[f->phase].fills++;
			if (f->phase != FILL_STAGED)
				note_age(&oldest, f, f->made_ns);
		}
	for (unsigned i = 0; i < oldest.n; i++)
		view_one_fill(&out->fill[i], oldest.top[i].object, now);
	out->nfill = oldest.n;
}

static void note_request(struct flight_request *q, void *arg)
{
	note_age(arg, CONTAINER_OF(q, struct fetch, out), q->started_ns);
}

static uint64_t span_present_bytes(const struct fetch_span *p)
{
	uint64_t bytes = 0;

	for (unsigned i = p->first; i < p->first + p->n; i++)
		if (fill_page_is(p->f, i, PAGE_PRESENT))
			bytes += fill_run_bytes(p->f, i, 1);
	return bytes;
}

static void view_request(
	struct request_view *v, const struct fetch *x, uint64_t now)
{
	const struct fill *f = x->span[0].f;
	bool origin = fetch_of_origin(x);

	*v = (struct request_view){
		.off = origin ? x->r.off : f->item.base + x->s.off,
		.len = origin ? x->r.len : x->s.len,
		.age_ns = now - x->out.started_ns,
		.quiet_ns = now -
			(x->out.alive_ns ? x->out.alive_ns : x->out.started_ns),
		.origin = origin,
		.slow = x->out.slow || x->late,
	};
	for (unsigned i = 0; i < x->nspans; i++)
		v->got_bytes += span_present_bytes(&x->span[i]);
	copy_path(v->path, f->path);
}

static void note_asked(
	struct cache_view *out, const struct list *asked, struct oldest *oldest)
{
	LIST_FOREACH(l, asked) {
		note_request(
			CONTAINER_OF(l, struct flight_request, link), oldest);
		out->nrequests++;
	}
}

static void view_requests(struct cache *c, struct cache_view *out, uint64_t now)
{
	struct oldest oldest = {.n = 0};

	out->nrequests = flight_out(cache_flight(c));
	flight_each(cache_flight(c), note_request, &oldest);
	for (unsigned i = 0; i < origin_level(c); i++) {
		const struct cache_provider *cs = &cache_asked(c)->provider[i];

		note_asked(out, &cs->inflight, &oldest);
		note_asked(out, &cs->late, &oldest);
	}
	for (unsigned i = 0; i < oldest.n; i++)
		view_request(&out->request[i], oldest.top[i].object, now);
	out->nrequest = oldest.n;
}

void cache_view(struct cache *c, struct cache_view *out)
{
	uint64_t now;

	*out = (struct cache_view){.nfills = 0};
	jobs_lock(c);
	now = clock_now_ns();
	view_fills(c, out, now);
	view_requests(c, out, now);
	jobs_unlock(c);
}

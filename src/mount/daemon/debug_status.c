/* SPDX-License-Identifier: MIT */
/* Builds the object of `refrain status --debug`: what the mount is doing now.
 * Runs on a control connection. It holds the lock of a part only while it
 * counts the part's objects and copies the oldest. */
#include "mount/daemon/mount_impl.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "mount/cache/cache_view.h"

static json_t *debug_number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *debug_ms(uint64_t ns)
{
	return debug_number(ns / NS_PER_MS);
}

static json_t *fill_object(const struct fill_view *f)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:s, s:s, s:o, s:i, s:i, s:i, "
			      "s:i, s:i, s:i, s:i, s:b}",
		"path", ctl_text_new(f->path), "offset", debug_number(f->base),
		"bytes", debug_number(f->size), "phase", f->phase, "priority",
		f->priority, "age_ms", debug_ms(f->age_ns), "pages",
		(int)f->pages, "present", (int)f->present, "wanted",
		(int)f->wanted, "inflight", (int)f->inflight, "waiters",
		(int)f->waiters, "warms", (int)f->warms, "plans", (int)f->plans,
		"admitted", f->tier);

	if (f->waiters > 0 && o) {
		(void)json_object_set_new(o, "waits_ms", debug_ms(f->waits_ns));
		(void)json_object_set_new(
			o, "waits_offset", debug_number(f->wants_off));
		(void)json_object_set_new(
			o, "waits_bytes", debug_number(f->wants_len));
	}
	return o;
}

static json_t *request_object(const struct request_view *r)
{
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "path",
		ctl_text_new(r->path), "to", r->origin ? "origin" : "peers",
		"offset", debug_number(r->off), "bytes", debug_number(r->len),
		"got_bytes", debug_number(r->got_bytes), "age_ms",
		debug_ms(r->age_ns), "quiet_ms", debug_ms(r->quiet_ns), "slow",
		r->slow);
}

/* This function and the following ones leave out members if memory is short. */
static void add_cache_view(json_t *o, struct cache *cache)
{
	CLEANUP_FREE struct cache_view *v = malloc(sizeof(*v));
	json_t *phases = json_object(), *fills = json_array();
	json_t *requests = json_array();

	if (v) {
		cache_view(cache, v);
		for (unsigned i = 0; i < CACHE_VIEW_PHASES; i++)
			(void)json_object_set_new(phases, v->phase[i].name,
				debug_number(v->phase[i].fills));
		for (unsigned i = 0; i < v->nfill; i++)
			(void)json_array_append_new(
				fills, fill_object(&v->fill[i]));
		for (unsigned i = 0; i < v->nrequest; i++)
			(void)json_array_append_new(
				requests, request_object(&v->request[i]));
		(void)json_object_set_new(o, "fills", debug_number(v->nfills));
		(void)json_object_set_new(
			o, "requests", debug_number(v->nrequests));
	}
	(void)json_object_set_new(o, "phases", phases);
	(void)json_object_set_new(o, "oldest_fills", fills);
	(void)json_object_set_new(o, "oldest_requests", requests);
}

static json_t *plan_object(const struct plan_view *p)
{
	const struct plan_status *s = &p->status;

	return json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f}",
		"reader", (int)p->reader, "positions",
		debug_number(s->positions), "done", debug_number(s->done),
		"front", debug_number(s->front), "cursor",
		debug_number(s->cursor), "step", debug_number(s->step),
		"ahead_items", debug_number(s->ahead_items), "ahead_bytes",
		debug_number(s->ahead_bytes), "fetched_items",
		debug_number(s->fetched_items), "failed_items",
		debug_number(s->failed), "step_ms", (double)s->step_ns / 1e6);
}

static void add_plans(json_t *o, struct plans *plans)
{
	CLEANUP_FREE struct plan_view *v = calloc(PLANS_MAX, sizeof(*v));
	unsigned n = v ? plans_view(plans, v) : 0;
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		(void)json_array_append_new(list, plan_object(&v[i]));
	(void)json_object_set_new(o, "plans", list);
}

json_t *mount_debug(struct mount *m)
{
	json_t *o = json_object();
	struct tree_waits waits;
	struct cache_status s;

	if (!o)
		return NULL;
	cache_status(m->cache, &s);
	tree_waits(m->tree, &waits);
	(void)json_object_set_new(o, "readers_wait", debug_number(s.parked));
	(void)json_object_set_new(o, "reads_wait_for_memory",
		debug_number(fs_reads_waiting(m->fs)));
	(void)json_object_set_new(o, "lookups", debug_number(waits.lookups));
	(void)json_object_set_new(o, "listings", debug_number(waits.listings));
	add_cache_view(o, m->cache);
	add_plans(o, m->plans);
	return o;
}

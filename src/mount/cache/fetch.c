/* SPDX-License-Identifier: MIT */
/*
 * Handles the answers of the origin and of other providers: copies bytes into
 * the memory of fills, and answers the reads that wait for them. dispatch.c
 * chooses the next request. Runs on the threads of the origin and of the
 * providers.
 */
#include "mount/cache/cache_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/magic.h"
#include "common/base/trace.h"
#include "mount/cache/fill_part_impl.h"

bool fetch_of_origin(const struct fetch *x)
{
	return x->level == origin_level(x->c);
}

size_t fetch_span_bytes(const struct fetch_span *p)
{
	return fill_run_bytes(p->f, p->first, p->n);
}

static void fetch_says_from(const struct fetch *x, struct fill *f)
{
	f->from = fetch_of_origin(x) ? LATENCY_ORIGIN : LATENCY_PEER;
}

/* Note that the first `got` bytes of a span have arrived, and answer the reads
 * that wait for them. */
static void span_arrived(
	struct fetch *x, struct fetch_span *p, size_t got, struct after *a)
{
	unsigned there = p->there;

	p->there = got >= fetch_span_bytes(p)
		? p->n
		: (unsigned)(got / FILL_PAGE_BYTES);
	fetch_says_from(x, p->f);
	if (p->there > there)
		fill_arrived(x->c, p->f, p->first + there, p->there - there,
			p->there == p->n, a);
}

static void fetch_arrived(struct fetch *x, struct after *a)
{
	size_t got = x->got;

	for (unsigned i = 0; i < x->nspans && got > 0; i++) {
		size_t bytes = fetch_span_bytes(&x->span[i]);

		span_arrived(x, &x->span[i], got, a);
		got -= got < bytes ? got : bytes;
	}
}

static void fetch_forget(struct fetch *x)
{
	struct cache *c = x->c;

	if (fetch_of_origin(x))
		flight_remove(cache_flight(c), &x->out);
	else
		provider_forget(c, x);
	providers_tell_idle(c);
}

/* Copy bytes into the fills. Needs no lock, because INFLIGHT pages belong to
 * this request. Returns true if this has completed at least one page. */
static bool fetch_copy(struct fetch *x, const char *bytes, size_t len)
{
	size_t at = x->got, before = at;

	x->got += len;
	for (unsigned i = 0; i < x->nspans && len > 0; i++) {
		const struct fetch_span *p = &x->span[i];
		size_t size = fetch_span_bytes(p);
		size_t n = at < size ? size - at : 0;

		if (n > len)
			n = len;
		fill_put(p->f, p->first, at, bytes, n);
		at = at < size ? 0 : at - size;
		bytes += n;
		len -= n;
	}
	return x->got / FILL_PAGE_BYTES > before / FILL_PAGE_BYTES;
}

static void fetch_came(struct fetch *x, const void *bytes, size_t len)
{
	struct cache *c = x->c;
	bool news = fetch_copy(x, bytes, len);
	struct after a;

	/* With the last bytes there is nothing to do here, because done()
	 * follows at once and answers the reads. */
	if (!news || x->got == x->r.len)
		return;
	jobs_enter(c, &a);
	flight_delivers(cache_flight(c), &x->out);
	fetch_arrived(x, &a);
	jobs_run(c, &a);
}

static void fetch_data(
	struct origin_read *r, uint64_t off, const void *bytes, size_t len)
{
	struct fetch *x = OBJECT(fetch, CONTAINER_OF(r, struct fetch, r));

	(void)off; /* bytes arrive in order, so `off` is known */
	COUNT_ADD(cache_config(x->c)->counters, origin_bytes, len);
	fetch_came(x, bytes, len);
}

/* -- Providers, whose pages arrive in any order ---------------------------- */

/* Receive bytes of a provider. Copying needs no lock, because INFLIGHT pages
 * belong to this request. */
static void ask_data(
	struct provider_read *s, uint64_t off, const void *bytes, size_t len)
{
	struct fetch *x = OBJECT(fetch, CONTAINER_OF(s, struct fetch, s));
	unsigned first = (unsigned)(off / FILL_PAGE_BYTES);
	struct cache *c = x->c;
	struct after a;

	assert(off % FILL_PAGE_BYTES == 0 && off >= s->off &&
		off + len <= s->off + s->len);
	fill_put(x->span[0].f, first, 0, bytes, len);
	x->got += len;
	/* With the last bytes there is nothing to do here, because done()
	 * follows at once and answers the reads. */
	if (x->got == s->len)
		return;
	jobs_enter(c, &a);
	fetch_says_from(x, x->span[0].f);
	fill_arrived(c, x->span[0].f, first, fill_pages(len), false, &a);
	jobs_run(c, &a);
}

/* Handle the end of a request to a provider. After a success, pages that are
 * still in flight have arrived with the last bytes. After a failure, the next
 * provider is asked for them. */
static void ask_end(struct fetch *x, int status, struct after *a)
{
	struct fetch_span *p = &x->span[0];
	unsigned i = p->first, n;

	if (status < 0)
		fill_owe(p->f);
	else
		fetch_says_from(x, p->f);
	while ((n = fill_run_inflight(p->f, p->first + p->n, &i)) > 0)
		if (status == 0)
			fill_arrived(
				x->c, p->f, i - n, n, i == p->first + p->n, a);
		else
			fill_ask_next(x->c, p->f, i - n, n, x->level + 1);
	fill_settle(x->c, p->f);
	fill_unref(x->c, p->f);
	fetch_put(x);
}

/* Handle a failed request for this fill. Bytes that arrived before the failure
 * are valid. */
static void span_failed(
	struct cache *c, struct fetch_span *p, int status, struct after *a)
{
	ASSERT_INSIDE(c);
	if (p->there == p->n)
		return;
	if (jobs_is_stopping(c) && status != -ESTALE)
		fill_mark(p->f, p->first + p->there, p->n - p->there,
			PAGE_ABSENT);
	else
		fill_fail(c, p->f, status, a);
}

static void fetch_end(struct fetch *x, int status, struct after *a)
{
	struct cache *c = x->c;

	for (unsigned i = 0; i < x->nspans; i++) {
		if (status < 0)
			span_failed(c, &x->span[i], status, a);
		fill_settle(c, x->span[i].f);
		fill_unref(c, x->span[i].f);
	}
	fetch_put(x);
}

/* Handle the origin's answer. The caller holds the lock. */
static void fetch_answered(struct fetch *x, int status, struct after *a)
{
	struct cache *c = x->c;

	ASSERT_INSIDE(c);
	assert(status < 0 || x->got == x->r.len);
	TRACE(answer, x, (int64_t)status, x->got, x->span[0].f->path);
	flight_note(cache_flight(c), &x->out, status == 0 ? x->r.len : 0,
		fill_ahead_wanted(c));
	fetch_forget(x);
	fetch_arrived(x, a);
	if (status == 0)
		COUNT(cache_config(c)->counters, origin_reads);
	fetch_end(x, status, a);
}

static void fetch_done(struct origin_request *q, int status)
{
	struct fetch *x = OBJECT(fetch, CONTAINER_OF(q, struct fetch, r.req));
	struct cache *c = x->c;
	struct after a;

	jobs_enter(c, &a);
	fetch_answered(x, status, &a);
	jobs_run(c, &a);
}

bool fetch_now(struct fetch *x, struct after *a)
{
	struct fill *f = x->span[0].f;
	struct cache *c = x->c;

	a->reads_now = false;
	if (x->nspans > 1 ||
		origin_read_now(cache_config(c)->origin, &x->r,
			fill_at(f, x->span[0].first)) < 0)
		return false;
	COUNT_ADD(cache_config(c)->counters, origin_bytes, x->r.len);
	x->got = x->r.len;
	jobs_lock(c);
	fetch_answered(x, 0, a);
	jobs_unlock(c);
	return true;
}

static void ask_done(struct provider_read *s, int status)
{
	struct fetch *x = OBJECT(fetch, CONTAINER_OF(s, struct fetch, s));
	struct cache *c = x->c;
	struct after a;

	assert(status < 0 || x->got == x->s.len);
	if (x->got == x->s.len)
		status = 0;
	jobs_enter(c, &a);
	provider_count(c, x, status);
	fetch_forget(x);
	ask_end(x, status, &a);
	jobs_run(c, &a);
}

void fetch_receive(struct fetch *x)
{
	x->r.req.done = fetch_done;
	x->r.data = fetch_data;
	x->s.done = ask_done;
	x->s.data = ask_data;
}

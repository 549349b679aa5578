/* SPDX-License-Identifier: MIT */
/* Answers the reads and warmings that wait for a fill. A read gets bytes of the
 * fill; a warming ends when the fill is complete. If the fill fails, both get
 * the error. Runs with the cache's lock held; jobs_run() calls the callbacks
 * without it. */
#include "mount/cache/cache_impl.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/trace.h"

static void fill_drained(struct cache *c, struct fill *f)
{
	planned_read(c, &f->plans, f->item.size);
	if (list_empty(&f->plans)) {
		fill_pass(c, f);
		return;
	}
	/* Have the kernel drop the pages of the item, so that the next reader
	 * requests them again. */
	fill_tell_passed(c, f);
	fill_turn(c, f);
}

/* Returns how many bytes of a page are in [off, end). */
static size_t page_bytes_in(size_t page, size_t off, size_t end)
{
	size_t from = page * FILL_PAGE_BYTES, to = from + FILL_PAGE_BYTES;

	return (to < end ? to : end) - (from > off ? from : off);
}

/* Note that a position of a plan begins to read the item. From now on the
 * position counts as having read the whole item, even if the kernel already has
 * some pages and will not request them, or requests some twice. */
void fill_begun(struct cache *c, struct fill *f)
{
	COUNT_ADD(cache_config(c)->counters, prefetch_carried_bytes,
		f->item.size - fill_bytes_without(f, PAGE_SPENT));
	fill_spend(f);
	fill_carry(f);
}

/* Note that bytes of the fill go to a reader. A page counts as served when its
 * last byte is served, even if this read does not begin at its first byte.
 * Reads for a position of a plan count once, at the first byte of the item. */
static void fill_serve(
	struct cache *c, struct fill *f, const struct cache_read *r)
{
	size_t end = r->off + r->len, again = 0;
	size_t to = end == f->item.size ? f->npages : end / FILL_PAGE_BYTES;

	ASSERT_INSIDE(c);
	if (f->claim == CLAIM_UNREAD) {
		f->claim = CLAIM_ASKED;
		COUNT(cache_config(c)->counters, prefetch_used);
	}
	if (r->planned && r->off == 0 && !r->again)
		fill_begun(c, f);
	if (r->off == 0 && r->plan_readers > 1)
		f->plan_readers = r->plan_readers - 1;
	else if (r->off == 0 && f->plan_readers > 0)
		f->plan_readers--;
	for (size_t i = r->off / FILL_PAGE_BYTES; i < to; i++) {
		if (!r->planned && f->page[i] & PAGE_SPENT)
			again += page_bytes_in(i, r->off, end);
		f->served += !(f->page[i] & PAGE_SERVED);
		f->page[i] |= PAGE_SERVED | PAGE_SPENT;
	}
	if (f->tally != TALLY_FIRST)
		COUNT_ADD(cache_config(c)->counters, prefetch_carried_bytes,
			again);
	f->last_read_ns = clock_now_ns();
	if (f->phase == FILL_STAGED && f->served == f->npages)
		fill_drained(c, f);
}

/* -- Parked reads ---------------------------------------------------------- */

/* Add the time since the last call to the counters, then add `change` to the
 * number of parked reads. */
static void readers_count(struct cache *c, int change)
{
	struct cache_readers *r = cache_readers(c);
	uint64_t now_ns = clock_now_ns();
	uint64_t us;

	ASSERT_INSIDE(c);
	if (r->parked == 0)
		r->counted_ns = now_ns;
	us = (now_ns - r->counted_ns) / NS_PER_US;
	if (us > 0) {
		COUNT_ADD(cache_config(c)->counters, starved_us, us);
		COUNT_ADD(cache_config(c)->counters, parked_us, us * r->parked);
		r->counted_ns += us * NS_PER_US;
	}
	r->parked += (uint64_t)(int64_t)change;
}

void readers_status(struct cache *c, struct cache_status *status)
{
	const struct list *waiting = &cache_readers(c)->waiting;

	readers_count(c, 0);
	status->parked = cache_readers(c)->parked;
	if (!list_empty(waiting))
		status->waits_ns = clock_now_ns() -
			LIST_FIRST(waiting, struct cache_read, waits)
				->parked_ns;
}

/* -- Reads ----------------------------------------------------------------- */

/* The fill was created for this read. Should it fetch only the pages of the
 * read? */
static bool read_asks_again(
	struct cache *c, const struct fill *f, const struct cache_read *r)
{
	return r->off > 0 && f->present + f->wanted == 0 &&
		f->phase == FILL_WAITING && f->res.charged_bytes == 0 &&
		r->len < f->item.size && r->len <= AGAIN_MAX_BYTES &&
		cache_readers(c)->passed[f->key.lo % AGAIN_ITEMS] == f->key.lo;
}

/* Note that the reader of a plan causes a second fetch of its item, because the
 * kernel dropped pages before that reader used them. */
static void note_reread(struct fill *f, const struct cache_read *r)
{
	if (!r->again || f->present + f->wanted > 0)
		return;
	f->tally = TALLY_REREAD;
	fill_spend(f);
}

static void note_miss(
	struct cache *c, const struct fill *f, const struct cache_read *r)
{
	const struct cache_config *config = cache_config(c);

	COUNT(config->counters, misses);
	if (config->missed && !r->again)
		config->missed(config->missed_arg,
			&(struct cache_miss){.key = f->key,
				.size_bytes = f->item.size,
				.planned_bytes = planned_bytes(c)});
}

ssize_t fill_join(struct cache *c, struct fill *f, struct cache_read *r)
{
	ASSERT_INSIDE(c);
	r->fill = f;
	list_init(&r->link);
	TRACE(miss, f->item.cookie, f->item.base, r->off, r->len, f->path);
	if (r->off == 0)
		note_miss(c, f, r);
	if (fill_has(f, r->off, r->len)) {
		cache_read_timed(
			c, &f->item, r, LATENCY_STAGING, clock_now_ns());
		fill_serve(c, f, r);
		fill_ref(f);
		r->data = f->buf + r->off;
		COUNT_ADD(cache_config(c)->counters, miss_bytes, r->len);
		return (ssize_t)r->len;
	}
	r->parked_ns = clock_now_ns();
	list_add_tail(&f->waiters, &r->link);
	list_add_tail(&cache_readers(c)->waiting, &r->waits);
	readers_count(c, 1);
	if (read_asks_again(c, f, r))
		f->whole = false;
	note_reread(f, r);
	fill_want_bytes(c, f, r->off, r->len, read_prio(r));
	return 0;
}

void fill_warm(struct cache *c, struct fill *f, struct cache_warm *w)
{
	ASSERT_INSIDE(c);
	list_add_tail(&f->warms, &w->link);
	fill_want(c, f, 0, f->npages, PRIO_FILL);
}

/* -- Answers --------------------------------------------------------------- */

/* Queue the answer of a parked read. The read holds a reference to the fill
 * until it has been answered. */
static void read_answer(
	struct cache *c, struct fill *f, struct cache_read *r, struct after *a)
{
	uint64_t now_ns = clock_now_ns();

	COUNT_TIME(
		cache_config(c)->counters, LATENCY_WAIT, now_ns - r->parked_ns);
	cache_read_timed(c, &f->item, r,
		r->status > 0 ? f->from : READ_TRACE_FAILED, now_ns);
	list_del(&r->link);
	list_del(&r->waits);
	list_add_tail(&a->list[AFTER_READ], &r->link);
	r->fill = f;
	fill_ref(f);
	readers_count(c, -1);
}

/* Queue the answers of the parked reads whose bytes have arrived. */
void fill_answer(struct cache *c, struct fill *f, struct after *a)
{
	ASSERT_INSIDE(c);
	LIST_FOREACH_SAFE(l, next, &f->waiters) {
		struct cache_read *r = CONTAINER_OF(l, struct cache_read, link);

		if (!fill_has(f, r->off, r->len))
			continue;
		r->status = (int)r->len;
		read_answer(c, f, r, a);
		fill_serve(c, f, r);
	}
}

static void warms_answer(struct fill *f, int status, struct after *a)
{
	LIST_FOREACH(l, &f->warms)
		CONTAINER_OF(l, struct cache_warm, link)->status = status;
	list_splice_tail(&a->list[AFTER_WARM], &f->warms);
}

/* done() may free the read, so use its members before. */
struct fill *read_run(struct cache *c, struct list *link)
{
	struct cache_read *r = CONTAINER_OF(link, struct cache_read, link);
	struct fill *f = r->fill;

	if (r->status > 0)
		COUNT_ADD(cache_config(c)->counters, miss_bytes, r->len);
	r->done(r, r->status, r->status > 0 ? f->buf + r->off : NULL);
	return f;
}

struct fill *warm_run(struct cache *c, struct list *link)
{
	struct cache_warm *w = CONTAINER_OF(link, struct cache_warm, link);

	(void)c;
	w->done(w, w->status);
	return NULL;
}

struct fill *stale_run(struct cache *c, struct list *link)
{
	struct fill *f = CONTAINER_OF(link, struct fill, stale);

	cache_config(c)->stale(cache_config(c)->arg, f->item.cookie);
	return f;
}

/* -- End of the fetch ------------------------------------------------------ */

/* Keep a complete fill that will not be published in memory, and serve it from
 * there until its memory is needed. */
static void fill_stage(struct cache *c, struct fill *f)
{
	ASSERT_INSIDE(c);
	f->phase = FILL_STAGED;
	f->last_read_ns = clock_now_ns();
	if (list_empty(&f->age))
		fill_line_up(c, f);
	if (f->served == f->npages)
		fill_drained(c, f);
}

static void fill_publish(struct cache *c, struct fill *f, struct after *a)
{
	f->phase = FILL_PUBLISHING;
	fill_line_up(c, f);
	fill_ref(f);
	f->move.in_memory =
		store_in_memory(cache_config(c)->store, f->res.tier);
	list_add_tail(&a->list[AFTER_PUBLISH], &f->move.link);
	cache_moves(c)->npublishing++;
}

/* Count an item that no tier gets. */
static void count_passed(const struct cache *c, const struct fill *f)
{
	if (f->item.barred)
		COUNT(cache_config(c)->counters, not_planned);
	else
		COUNT(cache_config(c)->counters, passed_through);
}

/* Handle the end of an offer: a provider has answered for all units of an item
 * that it may keep instead of the tiers. offer_status is 0 if it has them;
 * -ENOSPC if it has no space, so that a tier may get the item; otherwise
 * another error. */
static void fill_offer_ended(struct cache *c, struct fill *f, struct after *a)
{
	int status = f->offer_status;

	ASSERT_INSIDE(c);
	if (status == -ENOSPC && !jobs_is_stopping(c)) {
		f->offer = OFFER_REFUSED;
		fill_reserve(c, f);
		if (f->res.charged_bytes > 0) {
			fill_publish(c, f, a);
			return;
		}
	}
	if (status < 0)
		count_passed(c, f);
	warms_answer(f, status, a);
}

/* Handle the provider's answer for one unit. f->npushing still counts the push
 * of this unit. */
static void fill_offered(
	struct cache *c, struct fill *f, int status, struct after *a)
{
	ASSERT_INSIDE(c);
	if (status < 0 && f->offer_status != -ENOSPC)
		f->offer_status = status;
	/* In all other cases there is nothing to do: more answers follow, a
	 * tier has the item, or the version ceased. */
	if (f->offer == OFFER_MADE && f->npushing == 1 &&
		f->phase == FILL_STAGED)
		fill_offer_ended(c, f, a);
}

void fill_complete(struct cache *c, struct fill *f, struct after *a)
{
	ASSERT_INSIDE(c);
	fill_close_file(c, f);
	if (f->res.charged_bytes > 0) {
		fill_publish(c, f, a);
		return;
	}
	/* No tier gets an item that came from a provider. */
	if (providers_instead(c) && !fill_is_news(c, f, 0, f->npages)) {
		warms_answer(f, 0, a);
	} else if (f->offer == OFFER_NONE || f->npushing == 0) {
		/* The push of the last unit may have been dropped, so that no
		 * call of fill_offered() follows. */
		count_passed(c, f);
		warms_answer(f, -ENOSPC, a);
	}
	fill_stage(c, f);
}

void fill_arrived(struct cache *c, struct fill *f, unsigned first, unsigned n,
	bool answered, struct after *a)
{
	size_t bytes = fill_run_bytes(f, first, n);

	ASSERT_INSIDE(c);
	fill_mark(f, first, n, PAGE_PRESENT);
	f->present += n;
	if (f->tally == TALLY_REREAD)
		COUNT_ADD(cache_config(c)->counters, reread_bytes, bytes);
	planned_came(c, &f->plans, bytes, answered);
	if (fill_is_gone(f))
		return;
	providers_push(c, f,
		&(struct provider_news){
			.first = first,
			.n = n,
			.offered = fill_offered,
		},
		a);
	if (f->present == f->npages)
		fill_complete(c, f, a);
	fill_answer(c, f, a);
}

/* Answer all reads and warmings of the fill with the error, and end its
 * plans. */
static void answer_failed(
	struct cache *c, struct fill *f, int status, struct after *a)
{
	LIST_FOREACH_SAFE(l, next, &f->waiters) {
		struct cache_read *r = CONTAINER_OF(l, struct cache_read, link);

		r->status = status;
		read_answer(c, f, r, a);
	}
	warms_answer(f, status, a);
	fill_end_plans(c, f, status);
}

/* Fetch no more pages of the item. Its present pages stay. */
void fill_halt(struct cache *c, struct fill *f, int status, struct after *a)
{
	ASSERT_INSIDE(c);
	answer_failed(c, f, status, a);
	for (unsigned i = 0; i < f->npages && f->wanted > 0; i++)
		if (fill_page_is(f, i, PAGE_WANTED)) {
			f->page[i] &= (uint8_t)~PAGE_STATE_MASK;
			f->wanted--;
		}
	list_del(&f->queue);
	fill_settle(c, f);
}

/* Report an error that readers get. The end of the mount and a lack of memory
 * are not reported here. */
static void report_failure(struct cache *c, const struct fill *f, int status)
{
	struct event e = {.path = f->path, .status = status};

	if (status == -ESTALE)
		e.kind = EVENT_VERSION_REFUSED;
	else if (status != -ENOTCONN && status != -ENOMEM &&
		!list_empty(&f->waiters))
		e.kind = EVENT_READ_FAILED;
	else
		return;
	event_report(cache_config(c)->events, &e);
}

/* End a fill whose fetch has failed. */
void fill_fail(struct cache *c, struct fill *f, int status, struct after *a)
{
	enum fill_phase gone = FILL_GONE;

	ASSERT_INSIDE(c);
	if (fill_is_gone(f))
		return;
	report_failure(c, f, status);
	answer_failed(c, f, status, a);
	if (status == -ESTALE && list_empty(&a->list[AFTER_STALE])) {
		COUNT(cache_config(c)->counters, stale_reads);
		gone = FILL_CEASED;
		fill_ref(f);
		list_add_tail(&a->list[AFTER_STALE], &f->stale);
	}
	fill_leave_table(c, f, gone);
}

void fill_cease(struct cache *c, struct fill *f, struct after *a)
{
	ASSERT_INSIDE(c);
	answer_failed(c, f, -ESTALE, a);
	fill_leave_table(c, f, FILL_CEASED);
}

bool fill_published(struct cache *c, struct fill *f, int rc, struct after *a)
{
	bool ceased = f->phase == FILL_CEASED;

	ASSERT_INSIDE(c);
	/* -EEXIST: a tier has the entry already. For a warming this is a
	 * success, although nobody has checked that the entry can be read. */
	warms_answer(f, rc == -EEXIST ? 0 : rc, a);
	if (rc == 0) {
		COUNT(cache_config(c)->counters, admitted);
		/* The first read of these bytes will be a hit. */
		COUNT_ADD(cache_config(c)->counters, admitted_unread_bytes,
			fill_bytes_without(f, PAGE_SERVED));
		if (f->claim == CLAIM_UNREAD)
			planned_unread(c, &f->plans);
		f->claim = CLAIM_ASKED;
		fill_end_plans(c, f, 0);
		fill_leave_table(c, f, FILL_GONE);
	} else if (f->phase == FILL_PUBLISHING) {
		/* Keep the item in memory even after -EEXIST, because the
		 * existing entry may be unreadable. */
		fill_stage(c, f);
	}
	return ceased;
}

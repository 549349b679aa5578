/* SPDX-License-Identifier: MIT */
/*
 * Lists a bucket in ranges of keys. Each range is listed page by page, and
 * several ranges at a time, as many as the pages so far justify. If a page
 * shows that more keys follow in its range, the range is split, so that one
 * huge flat directory is listed as fast as many small ones. Keys beyond the end
 * of a range belong to another range.
 *
 * A range runs on one loop's thread. The listing's lock guards what its ranges
 * share, and is held while the caller gets batches.
 */
#include "origin/object/s3_range_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/names_memory.h"

#define RANGES_MAX 32u
#define PAGE_KEYS "1000"
#define PAGE_TRIES 6u
#define PAGE_PAUSE_NS (100 * NS_PER_MS)
/* A store may take long to find a page after many deleted keys. This limit is
 * below the 30 s after which the retry origin gives up the listing. */
#define PAGE_STALL_S 25u
/* The number of additional pages that splitting may cost: each range ends in
 * the middle of a page. SPARE_FREE are always allowed, and one more for each
 * SPARE_PAGES full pages. */
#define SPARE_FREE 48u
#define SPARE_PAGES 10u
/* A range is split only if each part seems to have at least this many pages. */
#define PART_PAGES 2u

/* -- A page ---------------------------------------------------------------- */

static void range_end(struct s3_range *x, int status);
static void range_next(struct s3_range *x);
static struct s3_range *range_split(
	struct s3_range *x, const struct page_progress *p);
static void ranges_begin(struct s3_range *x);

static void page_taken(struct s3_range *x)
{
	struct s3_listing *g = x->g;
	struct s3_range *others = NULL;
	struct page_progress p = {.n = 0};
	bool more;
	int rc;

	pthread_mutex_lock(&g->lock);
	rc = range_take_page(x, &p);
	if (rc == 0)
		rc = g->status;
	more = rc == 0 && x->page.truncated && !p.over &&
		!(g->probe && x->page.n > 0);
	if (more && range_stands_still(x, &p)) {
		rc = -EPROTONOSUPPORT;
		object_words(g->r, rc,
			"the server's listing does not advance: its pages have "
			"no new keys; check that --endpoint-url is an S3 "
			"store, or give the names with --manifest");
		more = false;
	}
	x->tries = 0;
	if (more && p.new > 0 && !g->unordered && !g->deaf && !g->probe)
		others = range_split(x, &p);
	pthread_mutex_unlock(&g->lock);
	ranges_begin(others);
	if (!more) {
		range_end(x, rc);
		return;
	}
	strcpy(x->token, x->page.token);
	range_next(x);
}

/* -- Requests -------------------------------------------------------------- */

static struct s3_range *range_of(struct call *c)
{
	return CONTAINER_OF(c, struct s3_range, call);
}

static int range_head(struct call *c, const struct head *h)
{
	(void)h;
	return s3_page_begin(&range_of(c)->page);
}

static int range_data(struct call *c, const void *data, size_t len)
{
	return s3_page_feed(&range_of(c)->page, data, len);
}

static bool is_passing(int status)
{
	return status == -EIO || status == -ETIMEDOUT || status == -EBADMSG ||
		status == -ECONNRESET || status == -ECONNREFUSED ||
		status == -EHOSTUNREACH || status == -EPROTO;
}

static void range_done(struct call *c, int status)
{
	struct s3_range *x = range_of(c);

	if (status == 0)
		status = s3_page_end(&x->page);
	if (status == 0) {
		page_taken(x);
		return;
	}
	if (is_passing(status) && !x->g->probe && ++x->tries < PAGE_TRIES) {
		COUNT(x->g->r->counters, origin_retries);
		transfer_start_later(
			x->loop, &c->t, PAGE_PAUSE_NS << (x->tries - 1));
		return;
	}
	range_end(x, status);
}

static const struct call_ops range_ops = {
	.head = range_head,
	.data = range_data,
	.done = range_done,
};

static void range_next(struct s3_range *x)
{
	struct call *c = &x->call;

	bytes_reset(&c->query);
	call_base_path(c);
	if (x->token[0])
		call_query(c, "continuation-token", x->token);
	if (!x->g->l->deep && !x->g->probe)
		call_query(c, "delimiter", "/");
	call_query(c, "encoding-type", "url");
	call_query(c, "list-type", "2");
	call_query(c, "max-keys", x->g->probe ? "1" : PAGE_KEYS);
	call_query(c, "prefix", x->g->prefix);
	if (!x->token[0] && x->after[0])
		call_query(c, "start-after", x->after);
	c->throttled = c->renewed = c->moved = c->skewed = 0;
	call_start(x->loop, c);
}

static void range_begin(struct post *p)
{
	range_next(CONTAINER_OF(p, struct s3_range, begin));
}

/* Begin ranges. Call this without the lock. A range may end and be freed as
 * soon as it has begun. */
static void ranges_begin(struct s3_range *x)
{
	struct s3_range *other;

	for (; x; x = other) {
		other = x->other;
		loop_post(x->loop, &x->begin);
	}
}

/* -- Ranges ---------------------------------------------------------------- */

/* Requires the lock. Create a range on a loop of its own. */
static struct s3_range *range_new(struct s3_listing *g)
{
	struct s3_range *x = calloc(1, sizeof(*x));

	ASSERT_HELD(&g->lock);
	if (!x)
		return NULL;
	call_init(&x->call, g->r, &range_ops, "GET");
	call_set_stall(&x->call, g->probe ? 0 : PAGE_STALL_S);
	x->g = g;
	x->loop = object_loop(g->r);
	post_init(&x->begin, range_begin);
	g->ranges++;
	return x;
}

/* Requires the lock. Returns the number of further ranges that are worthwhile
 * now. */
static unsigned ranges_wanted(const struct s3_listing *g)
{
	uint64_t full = g->keys / g->page_keys;
	uint64_t want = 2 * full < RANGES_MAX ? 2 * full : RANGES_MAX;
	uint64_t most = full + SPARE_FREE + full / SPARE_PAGES;

	ASSERT_HELD(&g->lock);
	want = want > g->ranges ? want - g->ranges : 0;
	most = most > g->pages + g->ranges ? most - g->pages - g->ranges : 0;
	return (unsigned)(want < most ? want : most);
}

/* Requires the lock. Returns the number of further parts into which to split
 * the rest of the range. There are two estimates, one from the whole range so
 * far and one from its last page, because the density of keys varies. */
static unsigned parts_left(
	const struct s3_range *x, const struct page_progress *p)
{
	const struct split_seen *seen = &x->g->seen;
	size_t skip = strlen(x->g->prefix);
	const char *after = x->after + skip, *end = x->end + skip;
	double whole, last, pages;

	ASSERT_HELD(&x->g->lock);
	if (!x->end[0])
		return RANGES_MAX; /* the number of keys is unknown */
	whole = split_share(seen, x->from[0] ? x->from + skip : "", after, end);
	last = split_share(
		seen, p->since[0] ? p->since + skip : "", after, end);
	whole *= (double)x->keys / (double)x->g->page_keys;
	pages = whole > last ? whole : last;
	return pages > (double)RANGES_MAX * PART_PAGES
		? RANGES_MAX
		: (unsigned)(pages / PART_PAGES);
}

/* Requires the lock. Split the rest of the range. The range keeps the keys
 * below the first split point. Returns the new ranges, which have not begun. */
static struct s3_range *range_split(
	struct s3_range *x, const struct page_progress *p)
{
	struct s3_listing *g = x->g;
	struct s3_range *others = NULL;
	size_t skip = strlen(g->prefix);
	char points[RANGES_MAX][SPLIT_POINT_MAX];
	unsigned wanted = ranges_wanted(g), parts = parts_left(x, p);
	unsigned n = split_points(&g->seen, x->after + skip,
		x->end[0] ? x->end + skip : NULL,
		wanted < parts ? wanted : parts, points);

	ASSERT_HELD(&x->g->lock);
	/* Create the last range first, because each range ends where the one
	 * created before it begins. */
	for (unsigned i = n; i-- > 0;) {
		struct s3_range *more;

		if (strlen(g->prefix) + strlen(points[i]) > S3_KEY_MAX)
			continue;
		more = range_new(g);
		if (!more)
			break; /* memory is short: continue with fewer ranges */
		strcpy(more->end, x->end);
		strcpy(more->after, g->prefix);
		strcat(more->after, points[i]);
		strcpy(more->from, more->after);
		strcpy(x->end, more->after);
		more->other = others;
		others = more;
	}
	return others;
}

/* Returns the status of a listing in which no key could be shown. */
static int empty_status(const struct s3_listing *g)
{
	if (g->sizeless) {
		object_words(g->r, -EPROTONOSUPPORT,
			"the server lists keys without their sizes; check that "
			"--endpoint-url is an S3 store, or give the names with "
			"--manifest");
		return -EPROTONOSUPPORT;
	}
	object_words(
		g->r, -ENOENT, "there are no keys below this prefix; check it");
	return -ENOENT;
}

static void listing_end(struct s3_listing *g)
{
	struct origin_list *l = g->l;
	int status = g->status;

	if (status == 0 && g->keys == 0)
		status = empty_status(g);
	pthread_mutex_destroy(&g->lock);
	free(g->prefix);
	free(g);
	origin_answer(&l->req, status);
}

static void range_end(struct s3_range *x, int status)
{
	struct s3_listing *g = x->g;
	unsigned left;

	call_release(&x->call);
	s3_page_release(&x->page);
	free(x->entries);
	free(x);
	pthread_mutex_lock(&g->lock);
	if (g->status == 0)
		g->status = status;
	left = --g->ranges;
	pthread_mutex_unlock(&g->lock);
	if (left == 0)
		listing_end(g);
}

static void listing_begin(
	struct object_origin *r, struct origin_list *l, bool probe)
{
	struct s3_listing *g = calloc(1, sizeof(*g));
	struct s3_range *x = NULL;

	if (g)
		g->prefix = s3_keys_below(r, l->path);
	if (g && g->prefix) {
		g->r = r;
		g->l = l;
		g->probe = probe;
		g->keys_max = names_memory_bytes() / NAME_MEMORY_BYTES;
		g->unordered = object_lists_unordered(r);
		lock_init(&g->lock, RANK_LISTING);
		pthread_mutex_lock(&g->lock);
		x = range_new(g);
		pthread_mutex_unlock(&g->lock);
	}
	if (!x) {
		if (g)
			free(g->prefix);
		free(g);
		object_late(r, &l->req);
		return;
	}
	loop_post(x->loop, &x->begin);
}

void s3_list(struct object_origin *r, struct origin_list *l)
{
	listing_begin(r, l, false);
}

void s3_probe(struct object_origin *r, struct origin_list *l)
{
	listing_begin(r, l, true);
}

/* SPDX-License-Identifier: MIT */
/*
 * Ranged reads, the same for S3 and http: one GET each, and a second one (a
 * hedge) on a new connection if the first is late. Size, ETag and range are
 * checked in the headers before the first byte is used. If there are two
 * requests, the one whose valid headers come first is used.
 *
 * A struct get runs on one loop's thread. Other threads post `begin` and `drop`
 * to this loop; the request's priv points to the struct get, under the origin's
 * lock.
 */
#include "origin/object/object_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

/* If a server does not support ranges, it may send a whole file of up to this
 * size for a part of it. */
#define UNRANGED_MAX (UINT64_C(8) << 20)
#define NOBODY (-1)
/* Longer reads are spread evenly over the loops, because receiving their bytes
 * keeps a processor busy. */
#define SHORT_MAX ((size_t)256 << 10)

struct origin_file {
	struct object_origin *r;
	_Atomic unsigned refs; /* 1 for the handle, and 1 for each get */
	/* a strong ETag from an earlier answer; guarded by r->lock */
	char etag[HEAD_ETAG_MAX];
	char path[];
};

/* The first request of a get, or its hedge. */
struct get_try {
	struct call call;
	struct get *get;
	bool running;
};

struct get {
	struct object_origin *r;
	struct origin_read *read;
	struct origin_file *file;
	struct loop *loop;
	struct post begin, drop;
	/* The members below are used on the loop's thread. */
	struct get_try tries[2];
	int winner;
	bool whole; /* the whole file is requested */
	uint64_t next, end;
	/* bytes to skip before `next` in an answer without ranges */
	uint64_t skip;
};

/* -- Files ----------------------------------------------------------------- */

struct origin_file *object_file_new(struct origin *o, const char *path)
{
	size_t len = strlen(path) + 1;
	struct origin_file *f = calloc(1, sizeof(*f) + len);

	if (!f)
		return NULL;
	f->r = object_of(o);
	atomic_init(&f->refs, 1);
	memcpy(f->path, path, len);
	return f;
}

static void file_put(struct origin_file *f)
{
	if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1)
		free(f);
}

void object_file_free(struct origin *o, struct origin_file *f)
{
	(void)o;
	file_put(f);
}

/* -- The end --------------------------------------------------------------- */

/* Returns the status of a read: a missing file counts as another version. */
static int read_status(int status)
{
	return status == -ENOENT ? -ESTALE : status;
}

static void get_end(struct get *g, int status)
{
	struct origin_read *r = g->read;

	for (int i = 0; i < 2; i++) {
		if (g->tries[i].running)
			call_cancel(&g->tries[i].call);
		call_release(&g->tries[i].call);
	}
	pthread_mutex_lock(&g->r->lock);
	r->req.priv = NULL; /* after this, no thread posts to this get */
	pthread_mutex_unlock(&g->r->lock);
	loop_unpost(g->loop, &g->drop);
	if (status == 0 && g->next != g->end)
		/* libcurl did not notice that the answer is too short */
		status = -ECONNRESET;
	file_put(g->file);
	free(g);
	origin_answer(&r->req, read_status(status));
}

/* -- Answers --------------------------------------------------------------- */

static struct get_try *try_of(struct call *c)
{
	return CONTAINER_OF(c, struct get_try, call);
}

/* Log why an answer is refused. Returns `status`. */
static int refuse_answer(const struct get *g, int status, const char *why)
{
	struct event e = {.kind = EVENT_ORIGIN_UNUSABLE,
		.path = g->file->path,
		.text = why,
		.cause = why};

	event_report(g->r->events, &e);
	return status;
}

/* Is the answer of the version that the caller wants? */
static int check_version(const struct get *g, const struct head *h)
{
	const struct file_version *want = &g->read->want;
	uint64_t size = h->has_range ? h->total : h->length;
	bool has_size = h->has_range ? h->has_total : h->has_length;
	bool other_size = has_size && size != want->size_bytes;

	/* S3 always sends an ETag, so this answer is not from S3. */
	if (want->tag && !h->tag && g->r->s3)
		return refuse_answer(g, -EBADMSG, "it has no ETag");
	/* `want` may have a time from a listing, even if the server sends no
	 * times. */
	if (object_is_foreign(want, h) && (want->tag || other_size))
		return refuse_answer(
			g, -EBADMSG, "it has neither an ETag nor a time");
	if (want->tag && h->tag != want->tag)
		return -ESTALE;
	if (!want->tag && want->mtime_ns && h->modified_ns &&
		h->modified_ns != want->mtime_ns)
		return -ESTALE;
	/* S3 always sends a length, too. An answer without it comes from a
	 * store or proxy that has decompressed the object, so the bytes are not
	 * the object's. */
	if (!has_size && g->r->s3)
		return refuse_answer(g, -EBADMSG, "it has no size");
	/* Nothing shows that the answer is this file: it could be a login page.
	 */
	if (!has_size && !want->tag && !(want->mtime_ns && h->modified_ns))
		return refuse_answer(
			g, -EBADMSG, "it has neither a version nor a size");
	return other_size ? -ESTALE : 0;
}

/* Is the answer the range that was requested? */
static int check_part(struct get *g, const struct head *h)
{
	if (h->code == 206) {
		if (!h->has_range || h->first != g->next ||
			h->last != g->end - 1 ||
			(h->has_length && h->length != g->end - g->next))
			return refuse_answer(g, -EBADMSG,
				"its range is not the one asked for");
		return 0;
	}
	if (h->code != 200 || h->has_range)
		return refuse_answer(
			g, -EBADMSG, "its HTTP status is not 200 or 206");
	if (g->whole)
		return 0;
	/* The server does not support ranges. */
	if (g->r->s3 || g->read->want.size_bytes > UNRANGED_MAX)
		return refuse_answer(
			g, -EOPNOTSUPP, "the server has no ranges");
	g->skip = g->next;
	return 0;
}

static void note_etag(struct get *g, const struct head *h)
{
	LOCK_SCOPE(&g->r->lock);

	if (g->file->etag[0] == '\0' && !h->weak && h->tag &&
		h->tag == g->read->want.tag)
		strcpy(g->file->etag, h->etag);
}

static int get_head(struct call *c, const struct head *h)
{
	struct get_try *t = try_of(c);
	struct get *g = t->get;
	int rc = 0;

	/* The other request was faster. libcurl does not allow to remove a
	 * transfer in a callback, so the slower one ends by this error, or with
	 * the get. */
	if (g->winner != NOBODY)
		return -ECANCELED;
	/* For S3 a Content-Encoding is only metadata of the object. From a web
	 * server it means that the bytes are encoded. */
	if (h->encoded && !g->r->s3)
		rc = refuse_answer(g, -EBADMSG, "it has a Content-Encoding");
	if (rc == 0)
		rc = check_version(g, h);
	if (rc == 0)
		rc = check_part(g, h);
	if (rc < 0)
		return rc;
	g->winner = t == &g->tries[1];
	note_etag(g, h);
	return 0;
}

static int get_data(struct call *c, const void *data, size_t len)
{
	struct get *g = try_of(c)->get;
	const char *at = data;
	size_t n = len;
	bool more;

	if (g->skip > 0) {
		size_t over = g->skip < n ? (size_t)g->skip : n;

		g->skip -= over;
		at += over;
		n -= over;
	}
	more = n > g->end - g->next;
	if (more) {
		if (g->whole)
			return refuse_answer(
				g, -EBADMSG, "it is longer than the file");
		n = (size_t)(g->end - g->next);
	}
	if (n > 0) {
		uint64_t off = g->next;

		g->next += n;
		g->read->data(g->read, off, at, n);
	}
	/* Stop at the end of a range, because the server may send on without
	 * end. If a whole file came in place of a range, read it to its end. */
	return more && call_status(c) == 206 ? -EALREADY : 0;
}

/* Report that the server answered with an error. */
static void report_refusal(const struct get *g, const struct call *c)
{
	unsigned code = call_status(c);
	char text[300];

	if (c->words)
		(void)snprintf(text, sizeof(text), "%s (HTTP status %u)",
			c->words, code);
	else
		(void)snprintf(
			text, sizeof(text), "its HTTP status is %u", code);
	(void)refuse_answer(g, 0, text);
}

static void get_done(struct call *c, int status)
{
	struct get_try *t = try_of(c);
	struct get *g = t->get;

	t->running = false;
	if (g->winner != NOBODY && t != &g->tries[g->winner])
		return;
	/* The other request may still deliver the bytes, of which it has sent
	 * none yet. */
	if (status < 0 && status != -ECANCELED && g->winner == NOBODY &&
		(g->tries[0].running || g->tries[1].running))
		return;
	if (call_status(c) >= 300 && status != -ESTALE && status != -ENOENT)
		report_refusal(g, c);
	get_end(g, status);
}

static void get_slow(struct call *c);

static const struct call_ops get_ops = {
	.head = get_head,
	.data = get_data,
	.slow = get_slow,
	.done = get_done,
};

/* -- Requests -------------------------------------------------------------- */

static void get_send(struct get *g, int which)
{
	struct get_try *t = &g->tries[which];
	struct call *c = &t->call;
	char etag[HEAD_ETAG_MAX];

	call_init(c, g->r, &get_ops, "GET");
	t->get = g;
	c->t.fresh = which > 0;
	call_path(c, g->file->path);
	pthread_mutex_lock(&g->r->lock);
	strcpy(etag, g->file->etag);
	pthread_mutex_unlock(&g->r->lock);
	if (!g->whole)
		bytes_printf(&c->more, "Range: bytes=%" PRIu64 "-%" PRIu64 "\n",
			g->next, g->end - 1);
	if (etag[0])
		bytes_printf(&c->more, "If-Match: %s\n", etag);
	if (!g->r->s3)
		bytes_text(&c->more, "Accept-Encoding: identity\n");
	t->running = true;
	call_start(g->loop, c);
}

static void get_slow(struct call *c)
{
	struct get *g = try_of(c)->get;
	struct event e = {.kind = EVENT_ORIGIN_HEDGED, .path = g->file->path};

	if (g->tries[1].get || !loops_may_hedge(g->r->loops))
		return;
	COUNT(g->r->counters, origin_hedged);
	event_report(g->r->events, &e);
	get_send(g, 1);
}

static void get_begin(struct post *p)
{
	get_send(CONTAINER_OF(p, struct get, begin), 0);
}

static void get_drop(struct post *p)
{
	get_end(CONTAINER_OF(p, struct get, drop), -ECANCELED);
}

void object_read(struct origin *o, struct origin_read *r)
{
	struct object_origin *remote = object_of(o);
	struct get *g = calloc(1, sizeof(*g));

	if (!g) {
		object_late(remote, &r->req);
		return;
	}
	g->r = remote;
	g->read = r;
	g->file = r->file;
	atomic_fetch_add_explicit(&g->file->refs, 1, memory_order_relaxed);
	g->loop = r->len <= SHORT_MAX ? loops_pick_running(remote->loops)
				      : loops_pick(remote->loops);
	post_init(&g->begin, get_begin);
	post_init(&g->drop, get_drop);
	g->winner = NOBODY;
	g->next = r->off;
	g->end = r->off + r->len;
	g->whole = r->off == 0 && r->len == r->want.size_bytes;
	/* no lock: nobody may abandon a request before object_read() returns
	 */
	r->req.priv = g;
	loop_post(g->loop, &g->begin);
}

void object_abandon(struct origin *o, struct origin_read *r)
{
	struct object_origin *remote = object_of(o);
	struct loop *woken = NULL;
	struct get *g;

	pthread_mutex_lock(&remote->lock);
	g = r->req.priv;
	if (g && !object_is_late(remote, &r->req) &&
		loop_put(g->loop, &g->drop))
		woken = g->loop;
	pthread_mutex_unlock(&remote->lock);
	if (woken)
		loop_wake(woken);
}

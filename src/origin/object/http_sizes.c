/* SPDX-License-Identifier: MIT */
/*
 * Looks up the sizes of files with HEAD, a few at a time, if the index of their
 * directory has no sizes.
 *
 * If the server has only errors for a file, the file gets no size, so that the
 * rest of its directory can be shown. But an outage must not hide files.
 * Therefore errors count only if the server answers for another file, the
 * witness: the last file of this origin whose size the server returned.
 *
 *   round --all asked, or errors in a row--> witness --answers--> next round
 *     |                                         '-- fails --> the error
 *     '-- no error ------------------------------------------> 0
 *
 * A round repeats the requests whose errors may be temporary. Loop thread.
 */
#include "origin/object/http_names_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

#define ROUNDS_MAX 5u
/* The first pause between two rounds. It doubles each time, to 3 s in all. */
#define ROUND_PAUSE_NS (200 * NS_PER_MS)
/* After so many errors in a row, the size of the witness is requested before
 * those of further files. */
#define DOUBTFUL SIZES_PARALLEL
/* Maximum number of files that are hidden if the server has not returned any
 * size. */
#define UNWITNESSED_MAX 3u
/* A prime above LISTING_NAMES_MAX. The index of the next file is this much
 * higher, modulo the number of files, so that the first requests are for all
 * parts of the directory: errors often affect neighbours. */
#define SPREAD UINT64_C(2654435761)

/* -- One size -------------------------------------------------------------- */

void size_call_init(struct call *c, struct object_origin *r,
	const struct call_ops *ops, bool by_get)
{
	by_get |= object_flag(&r->no_head);
	call_init(c, r, ops, by_get ? "GET" : "HEAD");
	c->heads_only = by_get;
	bytes_text(&c->more, "Accept-Encoding: identity\n");
	if (by_get)
		bytes_text(&c->more, "Range: bytes=0-0\n");
}

static bool is_throttling(unsigned code)
{
	return code == 503 || code == 429;
}

bool size_by_get(struct call *c, int status)
{
	unsigned code = call_status(c);
	bool never = code == 405 || code == 501;
	bool refused = status < 0 &&
		(never || code == 400 || code == 403 ||
			(code >= 500 && !is_throttling(code)));
	bool silent = status == 0 && !call_answer(c)->has_length;

	if (status == -ECANCELED || strcmp(c->method, "HEAD") != 0 ||
		(!refused && !silent))
		return false;
	if (never)
		object_set_flag(&c->r->no_head, true);
	c->method = "GET";
	c->heads_only = true;
	c->throttled = c->moved = 0;
	bytes_reset(&c->redirect);
	bytes_text(&c->more, "Range: bytes=0-0\n");
	call_start(call_loop(c), c);
	return true;
}

int size_answered(const struct call *c, int status, struct file_version *v)
{
	const struct head *h = call_answer(c);

	/* An empty file has no first byte: the server answers "bytes star/0".
	 */
	if (h->code == 416 && h->has_total && h->total == 0)
		status = 0;
	v->size_bytes = h->has_total ? h->total : h->length;
	v->mtime_ns = h->modified_ns;
	v->tag = h->tag;
	if (status == 0 && !h->has_total && (h->has_range || !h->has_length))
		status = -ENOENT;
	return status;
}

/* -- Rounds ---------------------------------------------------------------- */

static void sizes_go_on(struct sizes *s)
{
	s->in_a_row = 0;
	if (s->next == s->names->n) {
		if (s->again == 0) {
			s->done(s, 0);
			return;
		}
		s->round++;
		s->next = s->failed = s->again = 0;
	}
	sizes_ask(s);
}

static void witness_done(struct call *c, int status)
{
	struct size_head *h = CONTAINER_OF(c, struct size_head, call);
	struct sizes *s = h->s;
	struct file_version v;

	if (size_by_get(c, status))
		return;
	status = size_answered(c, status, &v);
	call_release(c);
	h->s = NULL;
	s->heads--;
	if (status == -ENOENT) {
		/* The witness is gone, so this error does not show an outage.
		 */
		object_set_witness(s->r, NULL);
		sizes_ask(s);
	} else if (status < 0) {
		s->done(s, status == -ECANCELED ? status : s->failure);
	} else {
		sizes_go_on(s);
	}
}

static const struct call_ops witness_ops = {.done = witness_done};

/* Request the size of the witness. Returns false if there is no witness. */
static bool ask_witness(struct sizes *s)
{
	CLEANUP_FREE char *path = object_witness(s->r);
	struct size_head *h = &s->head[0];

	if (!path)
		return false;
	size_call_init(&h->call, s->r, &witness_ops, false);
	call_path(&h->call, path);
	h->s = s;
	s->heads++;
	call_start(s->loop, &h->call);
	return true;
}

/* End the round, because no request is in flight any more. */
static void sizes_drained(struct sizes *s)
{
	if (s->status < 0 || s->failed == 0)
		s->done(s, s->status);
	else if (ask_witness(s))
		return; /* witness_done() continues */
	else if (s->failed > UNWITNESSED_MAX)
		s->done(s, s->failure);
	else
		sizes_go_on(s);
}

/* -- Files ----------------------------------------------------------------- */

/* Returns the path of the directory with the name, or NULL if memory is short.
 * The caller frees it. */
static char *size_path(const struct sizes *s, const struct listing_name *x)
{
	char *path;

	return asprintf(&path, "%s%s%s", s->dir, *s->dir ? "/" : "", x->name) <
			0
		? NULL
		: path;
}

/* Does this error concern only the file? Throttling concerns the server. So
 * does a failed connection, unless the server has redirected the request to
 * another host. */
static bool is_of_file(const struct call *c, int status)
{
	bool answered = call_status(c) != 0 || bytes_len(&c->redirect) > 0;

	return answered && !is_throttling(call_status(c)) &&
		status != -ECANCELED && status != -ENOMEM;
}

static bool error_may_pass(const struct call *c)
{
	return call_status(c) >= 500 || call_status(c) == 408;
}

static void size_failed(struct sizes *s, struct listing_name *x,
	const struct call *c, int status)
{
	x->fails = true;
	if (s->failed++ == 0)
		s->failure = status == -ESTALE ? -EIO : status;
	s->in_a_row++;
	if (error_may_pass(c) && s->round + 1 < ROUNDS_MAX) {
		x->again = true;
		s->again++;
	}
}

static void size_found(
	struct sizes *s, struct listing_name *x, const struct file_version *v)
{
	x->has_size = true;
	x->size_bytes = v->size_bytes;
	x->mtime_ns = v->mtime_ns;
	x->tag = v->tag;
	x->fails = false;
	s->in_a_row = 0;
	object_set_witness(s->r, size_path(s, x));
}

static void size_done(struct call *c, int status)
{
	struct size_head *h = CONTAINER_OF(c, struct size_head, call);
	struct sizes *s = h->s;
	struct listing_name *x = &s->names->at[h->which];
	struct file_version v;

	if (size_by_get(c, status))
		return;
	status = size_answered(c, status, &v);
	if (status == 0)
		size_found(s, x, &v);
	else if (status == -ENOENT || status == -EACCES)
		/* the file stays hidden, but the server works */
		x->fails = false;
	else if (is_of_file(c, status))
		size_failed(s, x, c, status);
	else
		s->status = status;
	call_release(c);
	h->s = NULL;
	s->heads--;
	sizes_ask(s);
}

static const struct call_ops size_ops = {.done = size_done};

static void ask_one(struct sizes *s, struct size_head *h, size_t which)
{
	CLEANUP_FREE char *path = size_path(s, &s->names->at[which]);
	struct call *c = &h->call;

	if (!path) {
		s->status = -ENOMEM;
		return;
	}
	size_call_init(c, s->r, &size_ops, s->round > 0);
	call_path(c, path);
	h->s = s;
	h->which = which;
	s->heads++;
	/* A new round begins after a pause. */
	if (h->round == s->round)
		call_start(s->loop, c);
	else
		transfer_start_later(
			s->loop, &c->t, ROUND_PAUSE_NS << (s->round - 1));
	h->round = s->round;
}

/* Get the next file of this round. Returns false if the sizes of all have been
 * requested. */
static bool next_file(struct sizes *s, size_t *which)
{
	while (s->next < s->names->n) {
		size_t i = s->next++ * SPREAD % s->names->n;
		struct listing_name *x = &s->names->at[i];

		if (s->round == 0 ? !x->is_dir && !x->has_size : x->again) {
			x->again = false;
			*which = i;
			return true;
		}
	}
	return false;
}

void sizes_ask(struct sizes *s)
{
	size_t which;

	for (unsigned i = 0; i < SIZES_PARALLEL; i++)
		if (!s->head[i].s && s->status == 0 && s->in_a_row < DOUBTFUL &&
			next_file(s, &which))
			ask_one(s, &s->head[i], which);
	if (s->heads == 0)
		sizes_drained(s);
}

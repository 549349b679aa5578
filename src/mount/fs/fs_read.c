/* SPDX-License-Identifier: MIT */
/*
 * Handles READ. A request is divided into pieces at the borders of items, and
 * the cache answers each piece at once or later. A request within one item, the
 * usual case, is answered without copying. Several pieces are gathered first.
 */
#include "mount/fs/fs_gather_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "mount/store/store.h"

/* A request whose bytes come from several items. */
struct gather {
	struct parked p;
	struct asked ask;
	/* Number of pieces without an answer, plus 1 until the handler has
	 * requested all */
	atomic_uint left;
	atomic_int status; /* error of the first piece that failed */
	size_t cap;	   /* size of buf */
	char buf[];
};

/* The size of a spare gather. It is enough for usual requests. */
#define GATHER_BYTES CACHE_READ_MAX_BYTES

/* A read of the cache: a whole request, or a piece of one. */
struct fs_read {
	struct cache_read r;
	/* the request itself; not used for a piece of a larger request */
	struct parked p;
	/* like `p`, not used for a piece of a larger request */
	struct asked ask;
	/* the larger request to which the piece belongs; NULL: `p` is the
	 * request */
	struct gather *gather;
	size_t at; /* offset of the piece in gather->buf */
};

static void reply(fuse_req_t req, int status, const void *data, size_t len)
{
	if (status < 0)
		fs_reply_error(req, status);
	else
		(void)fuse_reply_buf(req, data, len);
}

/* Answer a READ, after checking that the bytes belong to the version of the
 * node. */
static void fs_read_answer(
	struct parked *p, const struct asked *ask, int status, const void *data)
{
	size_t len = ask->len;
	fuse_req_t req = p->req;
	/* a copy, because `p` and `ask` may be freed once the request is
	 * claimed */
	struct asked mine;

	if (status >= 0 &&
		!manifest_serve(ask->fs->config.manifest, asked_node(ask),
			&ask->item.version))
		status = -ESTALE;
	if (status == -ESTALE)
		mine = *ask;
	if (!parked_claim(p) ||
		(status == -ESTALE && fs_follow(&mine, req, fs_read_elsewhere)))
		return;
	reply(req, status, data, len);
}

/* Returns the error that a reader gets. Most errors of the origin become I/O
 * errors. */
static int reader_errno(int status)
{
	if (status >= 0 || status == -ESTALE || status == -ENOMEM ||
		status == -ENOTCONN || status == -EACCES)
		return status;
	return -EIO;
}

/* Note that a piece has ended. If it was the last one, answer the request and
 * return true. */
static bool gather_end(struct gather *g)
{
	if (atomic_fetch_sub(&g->left, 1) != 1)
		return false;
	fs_read_answer(&g->p, &g->ask, atomic_load(&g->status), g->buf);
	return true;
}

static void gather_free(struct gather *g)
{
	struct fs *fs = g->ask.fs;
	size_t len = g->ask.len;

	free(g);
	gathers_give(&fs->gathers, len);
}

static void gather_piece(
	struct gather *g, size_t at, size_t len, int status, const void *data)
{
	int none = 0;

	if (status < 0)
		(void)atomic_compare_exchange_strong(
			&g->status, &none, reader_errno(status));
	else
		memcpy(g->buf + at, data, len);
	if (gather_end(g))
		gather_free(g);
}

static void read_done(struct cache_read *cr, int status, const void *data)
{
	struct fs_read *r = CONTAINER_OF(cr, struct fs_read, r);

	if (r->gather)
		gather_piece(r->gather, r->at, r->r.len, status, data);
	else
		fs_read_answer(&r->p, &r->ask, reader_errno(status), data);
	free(r);
}

static struct fs_read *read_take(struct fs_worker *w)
{
	struct fs_read *r = w->spare;

	w->spare = NULL;
	return r ? r : malloc(sizeof(*r));
}

static void read_give(struct fs_worker *w, struct fs_read *r)
{
	if (w->spare)
		free(r);
	else
		w->spare = r;
}

/* Read a piece. Answers the request, or ends the piece of `gather`, at once or
 * later. */
static void read_piece(struct fs *fs, struct fs_worker *w,
	const struct cache_item *item, struct fs_read *r)
{
	ssize_t n;

	r->r.done = read_done;
	n = cache_read(fs->config.cache, w->scratch, item, &r->r);
	if (n == 0)
		return;
	if (r->gather)
		gather_piece(r->gather, r->at, r->r.len, (int)n, r->r.data);
	else
		fs_read_answer(&r->p, &r->ask, reader_errno((int)n), r->r.data);
	if (n > 0)
		cache_read_end(fs->config.cache, &r->r);
	read_give(w, r);
}

static struct gather *gather_take(struct fs_worker *w, size_t len)
{
	size_t cap = len > GATHER_BYTES ? len : GATHER_BYTES;
	struct gather *g = w->gather;

	if (g && g->cap >= len) {
		w->gather = NULL;
		return g;
	}
	g = malloc(sizeof(*g) + cap);
	if (g)
		g->cap = cap;
	return g;
}

static void gather_give(struct fs_worker *w, struct gather *g)
{
	struct fs *fs = g->ask.fs;
	size_t len = g->ask.len;

	if (w->gather)
		free(g);
	else
		w->gather = g;
	gathers_give(&fs->gathers, len);
}

static void read_of(struct fs_read *r, const struct asked *ask)
{
	enum plans_turn turn = ask->turn;

	r->r.planned = turn != PLANS_NONE;
	r->r.ahead = turn == PLANS_LATER || turn == PLANS_LATER_AGAIN;
	r->r.again = turn == PLANS_NOW_AGAIN || turn == PLANS_LATER_AGAIN;
	r->r.plan_readers = ask->more.plan_readers;
}

/* Start to read all pieces. `left` also counts this function, so that the
 * request is not answered before the last piece was started. */
static void read_gather(
	const struct asked *ask, struct fs_worker *w, fuse_req_t req)
{
	struct cache_item item = ask->item;
	struct fs *fs = ask->fs;
	uint64_t off = ask->off;
	size_t at = 0, len = ask->len;
	/* An interrupt may free the request. */
	pid_t thread = fuse_req_ctx(req)->pid;
	struct gather *g;

	if (!ask->has_room && !gathers_take(&fs->gathers, len)) {
		gathers_wait(ask, req);
		return;
	}
	g = gather_take(w, len);
	if (!g) {
		gathers_give(&fs->gathers, len);
		reply(req, -ENOMEM, NULL, 0);
		return;
	}
	parked_init(&g->p, req);
	g->ask = *ask;
	atomic_init(&g->left, 1);
	atomic_init(&g->status, 0);
	while (at < len) {
		struct fs_read *r = read_take(w);
		size_t piece;

		cache_item_at(fs->config.cache, off + at, &item);
		piece = (size_t)(item.base + item.size - (off + at));
		if (piece > len - at)
			piece = len - at;
		if (piece > CACHE_READ_MAX_BYTES)
			piece = CACHE_READ_MAX_BYTES;
		atomic_fetch_add(&g->left, 1);
		if (!r) {
			gather_piece(g, at, piece, -ENOMEM, NULL);
			break;
		}
		r->gather = g;
		r->at = at;
		read_of(r, ask);
		r->r.off = (size_t)(off + at - item.base);
		r->r.len = piece;
		r->r.again_bytes = 0;
		r->r.thread = thread;
		read_piece(fs, w, &item, r);
		at += piece;
	}
	if (gather_end(g))
		gather_give(w, g);
}

/* Note the read in the plans. Do this before the answer, because the reader may
 * send the next read of the plan right after it. */
static void note_plans(struct asked *ask, struct fs_worker *w, fuse_req_t req)
{
	struct plans *plans = ask->fs->config.plans;
	pid_t pid = w && plans_ask_reader(plans)
		? fs_process_of(w, fuse_req_ctx(req)->pid)
		: 0;

	ask->turn = plans_note(
		plans, &ask->item, ask->off, ask->len, pid, &ask->more);
	ask->item.barred = ask->more.barred;
}

/* Handle a READ. `w` is the data of this thread, or NULL if memory is short. */
static void fs_read_run(
	const struct asked *ask, struct fs_worker *w, fuse_req_t req)
{
	const struct cache_item *item = &ask->item;
	struct fs_read *r;

	if (w &&
		(ask->off + ask->len > item->base + item->size ||
			ask->len > CACHE_READ_MAX_BYTES)) {
		read_gather(ask, w, req);
		return;
	}
	r = w ? read_take(w) : NULL;
	if (!r) {
		reply(req, -ENOMEM, NULL, 0);
		return;
	}
	r->r.thread = fuse_req_ctx(req)->pid;
	parked_init(&r->p, req);
	r->ask = *ask;
	r->gather = NULL;
	read_of(r, ask);
	r->r.off = (size_t)(ask->off - item->base);
	r->r.len = ask->len;
	r->r.again_bytes = ask->more.again_bytes;
	read_piece(ask->fs, w, item, r);
}

void fs_read_elsewhere(const struct asked *ask, fuse_req_t req)
{
	struct fs_worker *w = calloc(1, sizeof(*w));

	if (w) {
		MAGIC_BEGIN(w, fs_worker);
		w->scratch = store_scratch_new();
	}
	if (w && w->scratch) {
		fs_read_run(ask, w, req);
	} else {
		reply(req, -ENOMEM, NULL, 0);
		if (ask->has_room)
			gathers_give(&ask->fs->gathers, ask->len);
	}
	if (w)
		fs_worker_free(w);
}

/* Let the hook of a mount under analysis answer the READ. Returns true if it
 * did. */
static bool hook_answers(const struct asked *ask, fuse_req_t req)
{
	const struct fs_read_hook *hook = ask->fs->config.read_hook;
	CLEANUP_FREE void *buf = hook ? malloc(ask->len) : NULL;

	if (!buf ||
		!hook->read(hook->arg, &ask->item, ask->off, ask->len, buf,
			fuse_req_ctx(req)->pid))
		return false;
	reply(req, 0, buf, ask->len);
	return true;
}

void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));
	const struct fs_config *c = &fs->config;
	struct fs_worker *w = fs_worker(fs);
	struct asked ask = {.fs = fs,
		.item = {.cookie = fs_node(c, ino)},
		.off = (uint64_t)off,
		.len = size};
	struct cache_item *item = &ask.item;

	(void)fi; /* opens have no state */
	if (!manifest_identity(c->manifest, asked_node(&ask), &item->digest,
		    &item->version)) {
		reply(req, -ESTALE, NULL, 0);
		return;
	}
	if (off < 0 || ask.off >= item->version.size_bytes || size == 0) {
		reply(req, 0, NULL, 0);
		return;
	}
	if (size > item->version.size_bytes - ask.off)
		ask.len = (size_t)(item->version.size_bytes - ask.off);
	cache_item_at(c->cache, ask.off, item);
	if (hook_answers(&ask, req))
		return;
	note_plans(&ask, w, req);
	fs_read_run(&ask, w, req);
	if (item->size < item->version.size_bytes)
		prefetch_note(c->prefetch, item, ask.off, ask.len);
}

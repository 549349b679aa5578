/* SPDX-License-Identifier: MIT */
/* Names of an http origin. A directory is listed by WebDAV if the server
 * supports that, otherwise from its page, in JSON or HTML. If the page has no
 * sizes, http_sizes.c asks for them. Each listing runs on one loop's thread. */
#include "origin/object/http_names_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

/* Maximum length of a document; call_verdict.c and the manual state the limit.
 */
#define DOC_MAX ((size_t)48 << 20)
/* Limits for a server that sends the same listing for every path, so that its
 * tree has no end. A limit for the depth is not enough: with two directories in
 * each listing there would be 2^32 of them. */
#define DIRS_DEEP 32u
#define TOO_DEEP_MAX 1000u

static const char dav_body[] =
	"<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><prop><resourcetype/>"
	"<getcontentlength/><getlastmodified/><getetag/></prop></propfind>";

struct names_listing {
	struct call call;
	struct object_origin *r;
	struct loop *loop;
	struct post begin;
	struct origin_list *l;
	struct bytes doc;
	struct listing_names names;
	bool dav;
	bool probe;   /* the caller only asks whether there is a listing */
	int dav_lost; /* failure of PROPFIND that may be temporary; 0: none */
	struct sizes sizes;
};

/* -- The end --------------------------------------------------------------- */

static bool is_too_deep(const char *path)
{
	unsigned n = 0;

	for (; *path && n < DIRS_DEEP; path++)
		n += *path == '/';
	return n + 1 >= DIRS_DEEP;
}

/* Count the directories that are left out because they are too deep. */
static int count_too_deep(struct object_origin *r, unsigned hidden)
{
	return atomic_fetch_add(&r->too_deep, hidden) + hidden > TOO_DEEP_MAX
		? -EMLINK
		: 0;
}

static enum hidden why_hidden(const struct listing_name *x)
{
	if (x->is_dir)
		return HIDDEN_DEEP;
	return x->fails ? HIDDEN_FAILS : HIDDEN_SIZE;
}

static int names_deliver(struct names_listing *g)
{
	struct file_entry *entries = calloc(g->names.n + 1, sizeof(*entries));
	bool deep = is_too_deep(g->l->path);
	unsigned hidden = 0;
	size_t n = 0;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < g->names.n; i++) {
		const struct listing_name *x = &g->names.at[i];

		if (x->is_dir ? deep : !x->has_size) {
			object_hidden(g->r, x->name, why_hidden(x));
			hidden += x->is_dir;
			continue;
		}
		entries[n].name = x->name;
		entries[n++].attr = x->is_dir
			? object_dir_attr(g->r)
			: object_file_attr(
				  g->r, x->size_bytes, x->mtime_ns, x->tag);
	}
	for (size_t i = 0; i < g->names.bad; i++)
		object_hidden(g->r, g->names.bad_name ? g->names.bad_name : "?",
			HIDDEN_NAME);
	if (n > 0)
		g->l->batch(g->l, entries, n);
	free(entries);
	if (!*g->l->path)
		atomic_store(&g->r->too_deep, 0);
	return hidden > 0 ? count_too_deep(g->r, hidden) : 0;
}

static void names_finish(struct names_listing *g, int status)
{
	struct origin_list *l = g->l;

	if (status == 0 && !g->probe)
		status = names_deliver(g);
	call_release(&g->call);
	bytes_release(&g->doc);
	listing_release(&g->names);
	free(g);
	origin_answer(&l->req, status);
}

static void names_sized(struct sizes *sizes, int status)
{
	names_finish(CONTAINER_OF(sizes, struct names_listing, sizes), status);
}

/* -- The listing ----------------------------------------------------------- */

static struct names_listing *names_of(struct call *c)
{
	return CONTAINER_OF(c, struct names_listing, call);
}

static int names_data(struct call *c, const void *data, size_t len)
{
	struct names_listing *g = names_of(c);

	if (bytes_len(&g->doc) + len > DOC_MAX)
		return -EFBIG;
	bytes_add(&g->doc, data, len);
	return bytes_failed(&g->doc) ? -ENOMEM : 0;
}

static void names_send(struct names_listing *g)
{
	struct call *c = &g->call;

	call_release(c);
	call_init(c, g->r, c->ops, g->dav ? "PROPFIND" : "GET");
	bytes_reset(&g->doc);
	call_path(c, g->l->path);
	if (*g->l->path)
		bytes_char(&c->path, '/');
	if (g->dav) {
		bytes_text(&c->more, "Depth: 1\nContent-Type: text/xml\n");
		c->body = dav_body;
		c->body_len = strlen(dav_body);
	} else {
		bytes_text(&c->more,
			"Accept: application/json, text/html\n"
			"Accept-Encoding: identity\n");
	}
	call_start(g->loop, c);
}

/* Returns the path with which absolute links in the listing begin. After a
 * redirect, this is the path to which the server has redirected. */
static char *own_path(const struct names_listing *g)
{
	const struct bytes *moved = &g->call.redirect;
	struct bytes path = {0};
	struct url url;

	if (bytes_len(moved) > 0 && url_parse(bytes_get(moved), &url) == 0)
		return url.path;
	bytes_text(&path, g->r->base_path);
	if (*g->l->path) {
		bytes_char(&path, '/');
		bytes_encode(&path, g->l->path, strlen(g->l->path), true);
	}
	return bytes_take(&path);
}

static int names_parse(struct names_listing *g, const char *type)
{
	CLEANUP_FREE char *path = own_path(g);
	const char *doc = bytes_get(&g->doc);

	if (!path)
		return -ENOMEM;
	if (g->dav)
		return listing_from_dav(
			&g->names, path, doc, bytes_len(&g->doc));
	if (strcmp(type, "application/json") == 0) {
		/* The files of this server have times but no ETags. */
		object_set_flag(&g->r->untagged, true);
		return listing_from_json(&g->names, doc, bytes_len(&g->doc));
	}
	if (strcmp(type, "text/html") == 0)
		return listing_from_html(
			&g->names, path, doc, bytes_len(&g->doc));
	object_words(g->r, -ENOTDIR,
		"the server has no index of this directory (WebDAV, JSON or "
		"HTML)");
	return -ENOTDIR;
}

/* May this failure be temporary? It may be if the connection was closed, or if
 * the server or a proxy failed. */
static bool dav_may_return(unsigned code, int status)
{
	return code == 0
		? status == -ECONNRESET
		: code == 408 || code == 429 || (code >= 500 && code != 501);
}

/* Handle the failure of PROPFIND. Returns true if GET was sent instead. Some
 * servers without WebDAV close the connection or fail each time, so GET is also
 * tried after a failure. If a server is known to have WebDAV, GET is not sent
 * after a failure, because its listing may have other names. */
static bool names_without_dav(struct names_listing *g, int status)
{
	unsigned code = call_status(&g->call);
	bool passing = dav_may_return(code, status);
	bool known = object_flag(&g->r->dav);

	if (status == -ECANCELED || (passing ? known : code == 0))
		return false;
	/* A missing directory says nothing about other directories. */
	if (passing)
		g->dav_lost = status;
	else if (code != 404 && !known)
		object_set_flag(&g->r->no_dav, true);
	g->dav = false;
	names_send(g);
	return true;
}

static void names_done(struct call *c, int status)
{
	struct names_listing *g = names_of(c);

	if (g->dav && call_status(c) != 207) {
		if (!names_without_dav(g, status))
			names_finish(g, status ? status : -EIO);
		return;
	}
	if (g->dav)
		object_set_flag(&g->r->dav, true);
	if (status == 0)
		status = names_parse(g, call_type(c));
	if (status == 0 && g->dav_lost)
		object_set_flag(&g->r->no_dav, true);
	else if (status != -ECANCELED && g->dav_lost)
		status = g->dav_lost;
	if (status < 0 || g->probe)
		names_finish(g, status);
	else
		sizes_ask(&g->sizes);
}

static const struct call_ops names_ops = {
	.data = names_data,
	.done = names_done,
};

static void names_start(struct post *p)
{
	names_send(CONTAINER_OF(p, struct names_listing, begin));
}

static void names_open(
	struct object_origin *r, struct origin_list *l, bool probe)
{
	struct names_listing *g = calloc(1, sizeof(*g));

	if (!g) {
		object_late(r, &l->req);
		return;
	}
	g->r = r;
	g->l = l;
	g->call.ops = &names_ops;
	g->loop = object_loop(r);
	post_init(&g->begin, names_start);
	g->dav = !object_flag(&r->no_dav);
	g->probe = probe;
	g->sizes = (struct sizes){.r = r,
		.loop = g->loop,
		.dir = l->path,
		.names = &g->names,
		.done = names_sized};
	loop_post(g->loop, &g->begin);
}

void names_list(struct object_origin *r, struct origin_list *l)
{
	names_open(r, l, false);
}

void names_probe(struct object_origin *r, struct origin_list *l)
{
	names_open(r, l, true);
}

/* -- One name -------------------------------------------------------------- */

struct names_look {
	struct call call;
	struct object_origin *r;
	struct loop *loop;
	struct post begin;
	struct origin_stat *s;
};

/* Did a redirect show that the name is a directory? A server redirects from the
 * name of a directory to the same name with a slash. A redirect from the name
 * of a file may lead to a login page. */
static bool went_to_dir(const struct names_look *k)
{
	const struct bytes *to = &k->call.redirect;
	const char *path = k->s->path, *name = strrchr(path, '/');
	size_t len = strcspn(bytes_get(to), "?#");
	struct url url;
	char *last;
	bool same;

	if (len == 0 || bytes_get(to)[len - 1] != '/' ||
		url_parse(bytes_get(to), &url) < 0)
		return false;
	last = strrchr(url.path, '/');
	same = last && bytes_decode(last + 1, false) > 0 &&
		strcmp(last + 1, name ? name + 1 : path) == 0;
	free(url.path);
	return same;
}

static void found(struct names_look *k, int status, struct file_attr attr)
{
	struct origin_stat *s = k->s;

	call_release(&k->call);
	free(k);
	s->attr = status == 0 ? &attr : NULL;
	s->target = NULL;
	origin_answer(&s->req, status);
}

static void names_look_done(struct call *c, int status)
{
	struct names_look *k = CONTAINER_OF(c, struct names_look, call);
	const struct file_version *known = &k->s->known;
	struct file_version v;

	if (went_to_dir(k) && status != -ECANCELED) {
		found(k, 0, object_dir_attr(k->r));
		return;
	}
	if (size_by_get(c, status))
		return;
	/* If the size of a file is unknown, the file is not shown. */
	status = size_answered(c, status, &v);
	/* `known` may have a time from a listing, even if the server sends no
	 * times. */
	if (status == 0 && object_is_foreign(known, call_answer(c))) {
		if (known->tag || v.size_bytes != known->size_bytes)
			status = -EBADMSG;
		v.mtime_ns = known->mtime_ns;
	}
	found(k, status,
		object_file_attr(k->r, v.size_bytes, v.mtime_ns,
			object_flag(&k->r->untagged) ? 0 : v.tag));
}

static const struct call_ops names_look_ops = {.done = names_look_done};

static void names_look_begin(struct post *p)
{
	struct names_look *k = CONTAINER_OF(p, struct names_look, begin);

	if (!*k->s->path) {
		found(k, 0, object_dir_attr(k->r));
		return;
	}
	call_path(&k->call, k->s->path);
	call_start(k->loop, &k->call);
}

void names_stat(struct object_origin *r, struct origin_stat *s)
{
	struct names_look *k = calloc(1, sizeof(*k));

	if (!k) {
		object_late(r, &s->req);
		return;
	}
	size_call_init(&k->call, r, &names_look_ops, false);
	k->r = r;
	k->s = s;
	k->loop = object_loop(r);
	post_init(&k->begin, names_look_begin);
	loop_post(k->loop, &k->begin);
}

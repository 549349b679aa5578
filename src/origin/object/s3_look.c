/* SPDX-License-Identifier: MIT */
/* Looks up one name in a bucket. A short listing shows whether the name is a
 * file or a directory, and gives the same version as a long listing. If listing
 * is forbidden, HEAD finds only files. Each look-up runs on one loop's thread.
 */
#include "origin/object/s3_list_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "origin/object/s3_page_impl.h"

struct s3_look {
	struct call call;
	struct object_origin *r;
	struct loop *loop;
	struct post begin;
	struct origin_stat *stat;
	struct s3_page page;
	enum { LOOK_NAME, LOOK_BELOW, LOOK_HEAD } step;
	/* a file was found; a directory of the same name may still be found */
	bool found;
	struct file_attr attr;
	char *key;
};

char *s3_keys_below(const struct object_origin *r, const char *path)
{
	char dir[S3_KEY_MAX + 2];
	int n = snprintf(dir, sizeof(dir), "%s%s", path, *path ? "/" : "");
	char *prefix;

	if (n < 0 || (size_t)n >= sizeof(dir))
		return NULL;
	prefix = object_key(r, dir);
	if (prefix && strlen(prefix) > S3_KEY_MAX) {
		free(prefix);
		return NULL;
	}
	return prefix;
}

static struct s3_look *look_of(struct call *c)
{
	return CONTAINER_OF(c, struct s3_look, call);
}

static void look_end(struct s3_look *k, int status)
{
	struct origin_stat *s = k->stat;
	struct file_attr attr = k->attr;

	call_release(&k->call);
	s3_page_release(&k->page);
	free(k->key);
	free(k);
	s->attr = status == 0 ? &attr : NULL;
	s->target = NULL;
	origin_answer(&s->req, status);
}

static void look_found_dir(struct s3_look *k)
{
	k->attr = object_dir_attr(k->r);
	look_end(k, 0);
}

static void look_send(struct s3_look *k)
{
	struct call *c = &k->call;
	struct bytes prefix = {0};

	bytes_reset(&c->query);
	c->throttled = c->renewed = c->moved = c->skewed = 0;
	if (k->step == LOOK_HEAD) {
		c->method = "HEAD";
		call_key(c, k->key);
	} else {
		call_base_path(c);
		bytes_printf(&prefix, "%s%s", k->key,
			k->step == LOOK_BELOW ? "/" : "");
		call_query(c, "encoding-type", "url");
		call_query(c, "list-type", "2");
		call_query(c, "max-keys", k->step == LOOK_BELOW ? "1" : "2");
		call_query(c, "prefix", bytes_get(&prefix));
		if (bytes_failed(&prefix))
			bytes_fail(&c->path);
	}
	bytes_release(&prefix);
	call_start(k->loop, c);
}

/* How object number i of the listing relates to the name that is looked up.
 * NOTHING: there is no object i. */
enum relation { NOTHING, SAME, BELOW, OTHER };

static enum relation relation_of(const struct s3_look *k, size_t i)
{
	size_t len = strlen(k->key);
	const struct s3_object *o = &k->page.objects[i];
	const char *key;

	if (i >= k->page.n)
		return NOTHING;
	key = o->bad ? "" : s3_page_key(&k->page, o);
	if (strncmp(key, k->key, len) != 0)
		return OTHER;
	if (key[len] == '\0')
		return SAME;
	return key[len] == '/' ? BELOW : OTHER;
}

static void take_file(struct s3_look *k, const struct s3_object *o)
{
	k->found = true;
	k->attr = object_file_attr(k->r, o->size_bytes, o->mtime_ns, o->tag);
}

/* Decide what the name is. If there are a directory and a file of this name, it
 * is the directory. */
static void look_names(struct s3_look *k)
{
	enum relation first = relation_of(k, 0), second = relation_of(k, 1);

	if (first == BELOW || (first == SAME && second == BELOW)) {
		look_found_dir(k);
		return;
	}
	if (first == SAME)
		take_file(k, &k->page.objects[0]);
	/* Names such as "a-b" sort between "a" and "a/", so "a/" may still
	 * follow. */
	if (first == OTHER || second == OTHER) {
		k->step = LOOK_BELOW;
		look_send(k);
		return;
	}
	look_end(k, k->found ? 0 : -ENOENT);
}

static void look_headers(struct s3_look *k, const struct head *h)
{
	struct s3_object o = {
		.size_bytes = h->length,
		.mtime_ns = h->modified_ns,
		.tag = h->tag,
	};

	take_file(k, &o);
	look_end(k, h->has_length ? 0 : -EBADMSG);
}

static int look_head(struct call *c, const struct head *h)
{
	struct s3_look *k = look_of(c);

	(void)h;
	return k->step == LOOK_HEAD ? 0 : s3_page_begin(&k->page);
}

static int look_data(struct call *c, const void *data, size_t len)
{
	return s3_page_feed(&look_of(c)->page, data, len);
}

static void look_done(struct call *c, int status)
{
	struct s3_look *k = look_of(c);

	if (status == 0 && k->step != LOOK_HEAD)
		status = s3_page_end(&k->page);
	if (status == -EACCES && k->step == LOOK_NAME) {
		k->step = LOOK_HEAD;
		look_send(k);
	} else if (status < 0) {
		look_end(k, status);
	} else if (k->step == LOOK_HEAD) {
		look_headers(k, call_answer(c));
	} else if (k->step == LOOK_NAME) {
		look_names(k);
	} else if (relation_of(k, 0) == BELOW) {
		look_found_dir(k);
	} else {
		look_end(k, k->found ? 0 : -ENOENT);
	}
}

static const struct call_ops look_ops = {
	.head = look_head,
	.data = look_data,
	.done = look_done,
};

static void look_begin(struct post *p)
{
	struct s3_look *k = CONTAINER_OF(p, struct s3_look, begin);

	/* The source itself is a directory; no request is needed. */
	if (k->stat->path[0] == '\0')
		look_found_dir(k);
	else
		look_send(k);
}

void s3_stat(struct object_origin *r, struct origin_stat *s)
{
	struct s3_look *k = calloc(1, sizeof(*k));

	if (k)
		k->key = object_key(r, s->path);
	if (!k || !k->key) {
		free(k);
		object_late(r, &s->req);
		return;
	}
	call_init(&k->call, r, &look_ops, "GET");
	k->r = r;
	k->loop = object_loop(r);
	post_init(&k->begin, look_begin);
	k->stat = s;
	loop_post(k->loop, &k->begin);
}

/* SPDX-License-Identifier: MIT */
/* Adds one page of a range to its listing: which keys are names of files or
 * directories, which are not shown, and how far the range has come. */
#include "origin/object/s3_range_impl.h"

#include <errno.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/lock.h"

/* A listing ends with an error after EMPTY_PAGES pages in a row without a key,
 * or REPEATED_PAGES in a row without a greater key. */
#define EMPTY_PAGES 1000u
#define REPEATED_PAGES 8u

/* Requires the listing's lock. Count a key that is not shown. */
static void hide_key(struct s3_listing *g, const char *key, enum hidden why)
{
	ASSERT_HELD(&g->lock);
	if (g->probe)
		return; /* the full listing will count the key */
	object_hidden(g->r, key, why);
}

/* Requires the lock. Convert a key below the listing's prefix to a name. */
static void take_name(
	struct s3_range *x, const struct s3_object *o, struct page_progress *p)
{
	struct s3_listing *g = x->g;
	char *name = bytes_edit(&x->page.text) + o->key + strlen(g->prefix);
	size_t len = o->len - strlen(g->prefix);
	int rc;

	ASSERT_HELD(&x->g->lock);
	if (len == 0)
		return; /* the key marks the directory itself */
	rc = key_to_path(name, len);
	if (rc < 0)
		hide_key(g, bytes_get(&x->page.text) + o->key, HIDDEN_NAME);
	/* If rc > 0, the key marks a directory */
	else if (o->is_prefix || rc > 0)
		x->entries[p->n++] = (struct file_entry){
			.name = name, .attr = object_dir_attr(g->r)};
	else
		x->entries[p->n++] = (struct file_entry){.name = name,
			.attr = object_file_attr(
				g->r, o->size_bytes, o->mtime_ns, o->tag)};
}

static bool is_readable(
	const struct s3_listing *g, const char *key, const struct s3_object *o)
{
	return !o->bad && o->len <= S3_KEY_MAX && strlen(key) == o->len &&
		strncmp(key, g->prefix, strlen(g->prefix)) == 0;
}

/* Requires the lock. Add a key of a page to the listing. */
static void take_object(
	struct s3_range *x, const struct s3_object *o, struct page_progress *p)
{
	struct s3_listing *g = x->g;
	const char *key = bytes_get(&x->page.text) + o->key;

	ASSERT_HELD(&x->g->lock);
	if (!is_readable(g, key, o)) {
		g->sizeless |= o->sizeless;
		hide_key(g, o->bad ? "?" : key,
			o->sizeless ? HIDDEN_SIZE : HIDDEN_NAME);
		return;
	}
	if (strcmp(key, x->reached) > 0) {
		strcpy(x->reached, key);
		p->further = true;
	}
	if (!g->unordered && strcmp(key, p->since) <= 0) {
		bool early = strcmp(key, p->since) < 0;

		/* The server does not know start-after, or does not sort keys.
		 */
		g->deaf |= early;
		if (early && strcmp(key, x->from) > 0)
			hide_key(g, key, HIDDEN_ORDER);
		return;
	}
	if (x->end[0] && strcmp(key, x->end) > 0) {
		p->over = true;
		return;
	}
	if (strcmp(key, x->after) > 0)
		strcpy(x->after, key);
	p->new ++;
	split_note(&g->seen, key + strlen(g->prefix));
	take_name(x, o, p);
}

int range_take_page(struct s3_range *x, struct page_progress *p)
{
	struct s3_listing *g = x->g;
	int rc = ARRAY_ROOM(x->entries, x->page.n, &x->room);

	ASSERT_HELD(&x->g->lock);
	if (rc < 0)
		return rc;
	strcpy(p->since, x->after);
	for (size_t i = 0; i < x->page.n; i++)
		take_object(x, &x->page.objects[i], p);
	g->pages++;
	if (p->new > g->page_keys)
		g->page_keys = p->new;
	g->keys += p->new;
	x->keys += p->new;
	/* Report even an empty batch, because it shows that the server answers.
	 */
	if (!g->probe)
		g->l->batch(g->l, x->entries, p->n);
	return g->keys > g->keys_max ? -E2BIG : 0;
}

bool range_stands_still(struct s3_range *x, const struct page_progress *p)
{
	/* With a delimiter, servers repeat a prefix if many keys have it. */
	bool repeats = x->page.n > 0 && x->g->l->deep;

	if (p->further) {
		x->still = 0;
		return false;
	}
	if (strcmp(x->token, x->page.token) == 0)
		return true;
	if (x->g->unordered && p->new > 0)
		return false;
	x->still += repeats ? EMPTY_PAGES / REPEATED_PAGES : 1;
	return x->still > EMPTY_PAGES;
}

/* SPDX-License-Identifier: MIT */
/* Parses the three kinds of directory listings of web servers into names.
 * Leaves out links that do not name an entry of the directory, such as a link
 * to its parent or to another order. Pure functions. */
#include "origin/object/http_names_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/date.h"
#include "common/base/hex.h"
#include "common/base/json.h"

void listing_release(struct listing_names *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->at[i].name);
	free(x->at);
	free(x->bad_name);
	memset(x, 0, sizeof(*x));
}

/* Add a name. The listing owns it from now on. */
static struct listing_name *listing_add(struct listing_names *x, char *name)
{
	if (!name || x->n == LISTING_NAMES_MAX ||
		ARRAY_ROOM(x->at, x->n, &x->room) < 0) {
		x->failed = true;
		free(name);
		return NULL;
	}
	x->at[x->n] = (struct listing_name){.name = name};
	return &x->at[x->n++];
}

static bool is_name(const char *name, size_t len)
{
	return len > 0 && len <= 255 && strlen(name) == len &&
		!strchr(name, '/') && strcmp(name, ".") != 0 &&
		strcmp(name, "..") != 0;
}

/* Returns the next byte of a path, decoded; -1 for an encoded slash, because it
 * does not separate names. */
static int path_next(const char **at)
{
	int high = **at == '%' ? hex_value((*at)[1]) : -1;
	int low = high < 0 ? -1 : hex_value((*at)[2]);

	*at += low < 0 ? 1 : 3;
	if (low < 0)
		return (unsigned char)(*at)[-1];
	return high * 16 + low == '/' ? -1 : high * 16 + low;
}

/* Returns the rest of a link after `path`, even if link and path encode
 * characters differently; NULL if the link does not begin with `path`. */
static const char *link_after(const char *path, const char *link)
{
	while (*path)
		if (!*link || path_next(&path) != path_next(&link))
			return NULL;
	return link;
}

/* Returns the name to which a link leads if that is an entry of the directory,
 * otherwise NULL. If the link ends with a slash, the entry is a directory. */
static char *link_name(const char *path, const char *link, bool *is_dir)
{
	const char *host = strstr(link, "://");
	CLEANUP_FREE char *name = NULL;
	size_t len;
	int n;

	if (strpbrk(link, "?#"))
		return NULL;
	if (host) {
		link = strchr(host + 3, '/');
		if (!link)
			return NULL;
	}
	if (*link == '/') {
		link = link_after(path, link);
		if (!link || *link++ != '/')
			return NULL;
	} else if (strncmp(link, "./", 2) == 0) {
		link += 2;
	}
	len = strlen(link);
	*is_dir = len > 0 && link[len - 1] == '/';
	name = strndup(link, len - *is_dir);
	if (!name || strchr(name, '/'))
		return NULL;
	n = bytes_decode(name, false);
	return n > 0 && is_name(name, (size_t)n) ? steal_ptr(&name) : NULL;
}

static bool listing_parse_number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && end != text && !*end && *out <= INT64_MAX;
}

/* -- WebDAV ---------------------------------------------------------------- */

struct dav {
	struct listing_names *names;
	const char *path;
	struct listing_name now;
};

static void dav_begin(void *arg, const char *name)
{
	struct dav *d = arg;

	if (strcmp(name, "response") == 0) {
		free(d->now.name);
		memset(&d->now, 0, sizeof(d->now));
	} else if (strcmp(name, "collection") == 0) {
		d->now.is_dir = true;
	}
}

static void dav_end(
	void *arg, const char *parent, const char *name, char *text, size_t len)
{
	struct dav *d = arg;
	struct listing_name *added;
	bool slash;

	(void)parent;
	if (strcmp(name, "href") == 0) {
		free(d->now.name);
		d->now.name = link_name(d->path, text, &slash);
	} else if (strcmp(name, "getcontentlength") == 0) {
		d->now.has_size =
			listing_parse_number(text, &d->now.size_bytes);
	} else if (strcmp(name, "getlastmodified") == 0) {
		d->now.mtime_ns = date_parse_http(text);
	} else if (strcmp(name, "getetag") == 0) {
		d->now.tag = etag_tag(text, len);
	} else if (strcmp(name, "response") == 0 && d->now.name) {
		added = listing_add(d->names, d->now.name);
		if (added)
			*added = d->now;
		d->now.name = NULL;
	}
}

int listing_from_dav(
	struct listing_names *x, const char *path, const char *doc, size_t len)
{
	struct dav d = {.names = x, .path = path};
	struct xml_events events = {
		.begin = dav_begin, .end = dav_end, .arg = &d};
	struct xml *xml = xml_new(&events);
	int rc = xml ? xml_feed(xml, doc, len) : -ENOMEM;

	if (rc == 0)
		rc = xml_finish(xml);
	xml_free(xml);
	free(d.now.name);
	return rc == 0 && x->failed ? -ENOMEM : rc;
}

/* -- JSON ------------------------------------------------------------------ */

struct json_listing {
	struct listing_names *names;
	struct listing_name now;
	bool other; /* neither a file nor a directory */
};

static void json_end(struct json_listing *j)
{
	struct listing_name *added;
	size_t len = j->now.name ? strlen(j->now.name) : 0;

	/* Remove the slash that Caddy writes after the name of a directory. */
	if (j->now.is_dir && len > 0 && j->now.name[len - 1] == '/')
		j->now.name[len - 1] = '\0';
	if (j->other || !j->now.name ||
		!is_name(j->now.name, strlen(j->now.name))) {
		j->names->bad++;
		if (!j->names->bad_name && j->now.name)
			j->names->bad_name = steal_ptr(&j->now.name);
		free(j->now.name);
	} else {
		added = listing_add(j->names, j->now.name);
		if (added)
			*added = j->now;
	}
	memset(&j->now, 0, sizeof(j->now));
	j->other = false;
}

static void json_member(
	void *arg, unsigned depth, const char *key, const char *value)
{
	struct json_listing *j = arg;

	if (depth != 1)
		return;
	if (!value) {
		json_end(j);
	} else if (strcmp(key, "name") == 0) {
		free(j->now.name);
		j->now.name = strdup(value);
	} else if (strcmp(key, "type") == 0) {
		j->now.is_dir = strcmp(value, "directory") == 0;
		j->other = !j->now.is_dir && strcmp(value, "file") != 0;
		/* this member is Caddy's "type" */
	} else if (strcmp(key, "is_dir") == 0) {
		j->now.is_dir = strcmp(value, "true") == 0;
	} else if (strcmp(key, "size") == 0) {
		j->now.has_size =
			listing_parse_number(value, &j->now.size_bytes);
	} else if (strcmp(key, "mtime") == 0) {
		j->now.mtime_ns = date_parse_http(value);
	}
}

int listing_from_json(struct listing_names *x, const char *doc, size_t len)
{
	struct json_listing j = {.names = x};
	int rc = json_walk(doc, len, json_member, &j);

	free(j.now.name);
	return rc == 0 && x->failed ? -ENOMEM : rc;
}

/* -- HTML ------------------------------------------------------------------ */

/* Decode the characters that listings encode in attributes. */
static void listing_unescape(char *text)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'},
		{"&quot;", '"'}, {"&#39;", '\''}, {"&#x27;", '\''}};
	char *out = text;

	while (*text) {
		size_t i = 0, n = sizeof(known) / sizeof(known[0]);

		while (i < n &&
			strncmp(text, known[i].name, strlen(known[i].name)) !=
				0)
			i++;
		if (i < n) {
			*out++ = known[i].c;
			text += strlen(known[i].name);
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

static void html_link(struct listing_names *x, const char *path, char *link)
{
	struct listing_name *added;
	bool is_dir = false;
	char *name;

	listing_unescape(link);
	name = link_name(path, link, &is_dir);
	if (!name)
		return;
	added = listing_add(x, name);
	if (added)
		added->is_dir = is_dir;
}

/* Compare names. A directory comes before a file of the same name. */
static int listing_by_name(const void *a, const void *b)
{
	const struct listing_name *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : y->is_dir - x->is_dir;
}

/* Drop repeated names: a page may have several links to an entry, such as one
 * at its icon and one at its name. */
static void listing_unique(struct listing_names *x)
{
	size_t n = 0;

	if (x->n > 0)
		qsort(x->at, x->n, sizeof(*x->at), listing_by_name);
	for (size_t i = 0; i < x->n; i++) {
		if (n > 0 && strcmp(x->at[n - 1].name, x->at[i].name) == 0)
			free(x->at[i].name);
		else
			x->at[n++] = x->at[i];
	}
	x->n = n;
}

int listing_from_html(
	struct listing_names *x, const char *path, const char *doc, size_t len)
{
	CLEANUP_FREE char *text = strndup(doc, len);
	char *at = text;

	if (!text)
		return -ENOMEM;
	while ((at = strcasestr(at, "href="))) {
		char quote = at[5], *end;

		at += 5;
		if (quote != '"' && quote != '\'')
			continue;
		end = strchr(at + 1, quote);
		if (!end)
			break;
		*end = '\0';
		html_link(x, path, at + 1);
		at = end + 1;
	}
	listing_unique(x);
	return x->failed ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: MIT */
/* One page of ListObjectsV2. Keys are percent-encoded, with '+' for a blank, if
 * the server has followed encoding-type=url. One thread at a time uses a page.
 */
#include "origin/object/s3_page_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/clock.h"
#include "common/base/date.h"

/* -- Keys ------------------------------------------------------------------ */

static bool is_good_part(const char *part, size_t len)
{
	if (len == 0 || len > 255)
		return false;
	if (len <= 2 && part[0] == '.' && part[len - 1] == '.')
		return false;
	return memchr(part, '\0', len) == NULL;
}

int key_to_path(char *key, size_t len)
{
	bool marks_dir = len > 0 && key[len - 1] == '/';
	const char *at = key;

	if (marks_dir)
		key[--len] = '\0';
	while (at <= key + len) {
		const char *slash = memchr(at, '/', (size_t)(key + len - at));
		const char *end = slash ? slash : key + len;

		if (!is_good_part(at, (size_t)(end - at)))
			return -EINVAL;
		at = end + 1;
	}
	return marks_dir;
}

/* -- A page ---------------------------------------------------------------- */

static void page_begin(void *arg, const char *name)
{
	struct s3_page *p = arg;

	if (strcmp(name, "Contents") != 0)
		return;
	memset(&p->now, 0, sizeof(p->now));
	p->has_key = p->has_size = false;
}

static void page_add(struct s3_page *p)
{
	if (p->n == S3_PAGE_MAX || ARRAY_ROOM(p->objects, p->n, &p->room) < 0)
		p->failed = true;
	else
		p->objects[p->n++] = p->now;
}

/* Add the text to the text of the page, with a NUL after it. */
static void page_take_key(struct s3_page *p, const char *text, size_t len)
{
	p->now.key = bytes_len(&p->text);
	p->now.len = len;
	p->has_key = true;
	bytes_add(&p->text, text, len + 1);
}

static uint64_t page_parse_size(const char *text, bool *good)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	*good = !errno && end > text && !*end && *text != '-' && n <= INT64_MAX;
	return n;
}

static void contents_end(
	struct s3_page *p, const char *name, const char *text, size_t len)
{
	if (strcmp(name, "Key") == 0)
		page_take_key(p, text, len);
	else if (strcmp(name, "Size") == 0)
		p->now.size_bytes = page_parse_size(text, &p->has_size);
	else if (strcmp(name, "LastModified") == 0)
		p->now.mtime_ns = date_parse_iso(text);
	else if (strcmp(name, "ETag") == 0)
		p->now.tag = etag_tag(text, len);
}

static void result_end(
	struct s3_page *p, const char *name, const char *text, size_t len)
{
	if (strcmp(name, "Contents") == 0) {
		/* An object without a size is bad; it must not look like an
		 * empty file. */
		p->now.bad = !p->has_key || !p->has_size;
		p->now.sizeless = p->has_key && !p->has_size;
		page_add(p);
	} else if (strcmp(name, "IsTruncated") == 0) {
		p->truncated = strcmp(text, "true") == 0;
	} else if (strcmp(name, "EncodingType") == 0) {
		p->encoded = strcmp(text, "url") == 0;
	} else if (strcmp(name, "NextContinuationToken") == 0) {
		if (len < sizeof(p->token))
			memcpy(p->token, text, len + 1);
		else
			p->failed = true;
	}
}

static void page_element(
	void *arg, const char *parent, const char *name, char *text, size_t len)
{
	struct s3_page *p = arg;

	if (strcmp(parent, "Contents") == 0) {
		contents_end(p, name, text, len);
	} else if (strcmp(parent, "ListBucketResult") == 0) {
		result_end(p, name, text, len);
	} else if (strcmp(parent, "CommonPrefixes") == 0 &&
		strcmp(name, "Prefix") == 0) {
		memset(&p->now, 0, sizeof(p->now));
		page_take_key(p, text, len);
		p->now.is_prefix = true;
		page_add(p);
	} else if (!*parent && strcmp(name, "ListBucketResult") == 0) {
		p->is_list = true;
	}
}

int s3_page_begin(struct s3_page *p)
{
	struct xml_events events = {
		.begin = page_begin, .end = page_element, .arg = p};

	p->token[0] = '\0';
	p->truncated = p->encoded = p->is_list = p->failed = false;
	p->n = p->fed = 0;
	bytes_reset(&p->text);
	if (p->xml)
		return xml_restart(p->xml);
	p->xml = xml_new(&events);
	return p->xml ? 0 : -ENOMEM;
}

int s3_page_feed(struct s3_page *p, const void *data, size_t len)
{
	int rc;

	p->fed += len;
	if (p->fed > S3_PAGE_BYTES_MAX)
		return -EBADMSG;
	rc = xml_feed(p->xml, data, len);
	return rc == 0 && p->failed ? -EBADMSG : rc;
}

/* Decode the keys in place, because no key gets longer. */
static void decode_keys(struct s3_page *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct s3_object *o = &p->objects[i];
		int len;

		if (o->bad)
			continue;
		len = bytes_decode(bytes_edit(&p->text) + o->key, true);
		o->bad = len < 0;
		o->len = len < 0 ? 0 : (size_t)len;
	}
}

int s3_page_end(struct s3_page *p)
{
	int rc = xml_finish(p->xml);

	if (rc == 0 && (!p->is_list || p->failed || bytes_failed(&p->text)))
		rc = -EBADMSG;
	if (rc == 0 && p->encoded)
		decode_keys(p);
	return rc;
}

void s3_page_release(struct s3_page *p)
{
	xml_free(p->xml);
	free(p->objects);
	bytes_release(&p->text);
	memset(p, 0, sizeof(*p));
}

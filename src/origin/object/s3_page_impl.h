/* SPDX-License-Identifier: MIT */
/* Parses one page of a listing (ListObjectsV2) as it arrives; private to this
 * room. */
#ifndef OBJECT_S3_PAGE_IMPL_H
#define OBJECT_S3_PAGE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "origin/web/web.h"

#define S3_KEY_MAX 1024

/* The maximum number of keys in a page; servers send 1,000. */
#define S3_PAGE_MAX 100000u

/* Limit for a document: stores that ignore max-keys may send S3_PAGE_MAX keys
 * of 450 bytes each. */
#define S3_PAGE_BYTES_MAX ((size_t)64 << 20)

struct s3_object {
	size_t key, len; /* place in the page's text; decoded at the end */
	uint64_t size_bytes, tag;
	int64_t mtime_ns;
	bool is_prefix; /* a common prefix: only `key` and `len` count */
	bool bad;	/* the key or the size cannot be understood */
	bool sizeless;	/* bad, because its size is missing or malformed */
};

/*
 * Use the objects of a page only after s3_page_end(), because a server may say
 * at the end whether keys are encoded. Zero it before first use.
 */
struct s3_page {
	struct xml *xml;
	struct bytes text;
	struct s3_object *objects;
	size_t n, room;
	struct s3_object now;
	bool has_key, has_size; /* members that `now` has */
	char token[2048];	/* NextContinuationToken, or "" */
	bool truncated, encoded, is_list;
	bool failed; /* too many keys, a token too long, or no memory */
	size_t fed;  /* bytes of the document so far */
};

int s3_page_begin(struct s3_page *p);
/* Parse more of the document. Returns 0, or -EBADMSG if it is not XML or is too
 * long. The limit is needed because a server may send without end. */
int s3_page_feed(struct s3_page *p, const void *data, size_t len);
/* End the document. Returns 0, or -EBADMSG, also for a document of another
 * kind. */
int s3_page_end(struct s3_page *p);
void s3_page_release(struct s3_page *p);

static inline const char *s3_page_key(
	const struct s3_page *p, const struct s3_object *o)
{
	return bytes_get(&p->text) + o->key;
}

/*
 * Convert a key without its prefix to a path, in place. Returns 0; 1 if the key
 * marks a directory, whose final slash is removed; or -EINVAL if it cannot be a
 * path: it has empty, "." or ".." components, or one over 255 bytes.
 */
int key_to_path(char *key, size_t len);

#endif

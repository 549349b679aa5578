/* SPDX-License-Identifier: MIT */
/* Parses one page of a listing (ListObjectsV2) as it arrives. Private to this
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

/* Limit for a document. Stores that ignore max-keys may send S3_PAGE_MAX keys
 * of 450 bytes each. */
#define S3_PAGE_BYTES_MAX ((size_t)64 << 20)

struct s3_object {
	size_t key, len; /* offset in the page's text; decoded at the end */
	uint64_t size_bytes, tag;
	int64_t mtime_ns;
	bool is_prefix; /* a common prefix: only `key` and `len` are set */
	bool bad;	/* the key or the size cannot be understood */
	bool sizeless;	/* also bad: its size is missing or malformed */
};

/* Use the objects of a page only after s3_page_end(), because a server may say
 * at the end whether keys are encoded. Zero the struct before its first use. */
struct s3_page {
	struct xml *xml;
	struct bytes text;
	struct s3_object *objects;
	size_t n, room;
	struct s3_object now;
	bool has_key, has_size; /* which members of `now` are set */
	char token[2048];	/* NextContinuationToken, or "" */
	bool truncated, encoded, is_list;
	/* there were too many keys, a token was too long, or memory was short
	 */
	bool failed;
	size_t fed; /* number of bytes of the document so far */
};

int s3_page_begin(struct s3_page *p);
/* Parse more of the document. Returns 0, or -EBADMSG if it is not XML or is too
 * long. The limit is necessary because a server may send without end. */
int s3_page_feed(struct s3_page *p, const void *data, size_t len);
/* End the document. Returns 0, or -EBADMSG if it is incomplete or of another
 * kind. */
int s3_page_end(struct s3_page *p);
void s3_page_release(struct s3_page *p);

static inline const char *s3_page_key(
	const struct s3_page *p, const struct s3_object *o)
{
	return bytes_get(&p->text) + o->key;
}

/* Convert a key without its prefix to a path, in place. Returns 0; 1 if the key
 * marks a directory, whose final slash is removed; or -EINVAL if the key cannot
 * be a path, because it has a component that is empty, "." or "..", or longer
 * than 255 bytes. */
int key_to_path(char *key, size_t len);

#endif

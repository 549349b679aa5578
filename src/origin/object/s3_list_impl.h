/* SPDX-License-Identifier: MIT */
/* Lists a bucket, and looks up single names in it. Private to the s3 files. */
#ifndef OBJECT_S3_LIST_IMPL_H
#define OBJECT_S3_LIST_IMPL_H

#include "origin/object/object_impl.h"

/* List l->path. A deep listing sends several requests at a time. Any thread. */
void s3_list(struct object_origin *r, struct origin_list *l);

/* List a single key. The status of done() says whether there is any key;
 * batch() gets no entries. */
void s3_probe(struct object_origin *r, struct origin_list *l);

/* Look up one name with one or two requests. Any thread. */
void s3_stat(struct object_origin *r, struct origin_stat *s);

/* Returns the prefix of all keys below a path of the source; NULL if memory is
 * short or the prefix is too long for a key. The caller frees it. */
char *s3_keys_below(const struct object_origin *r, const char *path);

/*
 * Find points that split the keys after `a` (bytewise) up to `b`, or up to the
 * end if `b` is NULL. `a` and `b` do not contain the prefix that all keys
 * share. Writes at most `max` points in ascending order and returns their
 * number. `seen` records which bytes occur at each of the first places of the
 * keys.
 */
#define SPLIT_PLACES 64u
#define SPLIT_POINT_MAX (SPLIT_PLACES + 2u)
struct split_seen {
	uint32_t bytes[SPLIT_PLACES][8]; /* a map of 256 bits for each place */
};
void split_note(struct split_seen *seen, const char *key);
unsigned split_points(const struct split_seen *seen, const char *a,
	const char *b, unsigned max, char (*points)[SPLIT_POINT_MAX]);

/* Estimate how many keys there are after `a` up to `b` for each key between
 * `from` and `a`, based on the bytes seen so far. Returns 0 if there are none
 * or nothing is known. */
double split_share(const struct split_seen *seen, const char *from,
	const char *a, const char *b);

#endif

/* SPDX-License-Identifier: MIT */
/* Listing a bucket, and looking at one name in it; private to s3. */
#ifndef REMOTE_LIST_IMPL_H
#define REMOTE_LIST_IMPL_H

#include "remote/remote_impl.h"

/* List l->path; deep listings run in parallel. Any thread. */
void s3_list(struct remote *r, struct origin_list *l);

/* One page of one key: done() says whether there is any, batch() nothing. */
void s3_probe(struct remote *r, struct origin_list *l);

/* One request, two at times. Any thread. */
void s3_stat(struct remote *r, struct origin_stat *s);

/*
 * Where to split the keys after `a` (bytewise), up to `b` or without an end
 * if it is NULL; both without the prefix that they share with all others.
 * Fills in at most `max` points between them in ascending order and returns
 * their number. `seen` says which bytes keys have at each of their first
 * places.
 */
#define SPLIT_PLACES 64u
#define SPLIT_POINT_MAX (SPLIT_PLACES + 2u)
struct split_seen {
	uint32_t bytes[SPLIT_PLACES][8]; /* bit maps of 256 */
};
void split_note(struct split_seen *seen, const char *key);
unsigned split_points(const struct split_seen *seen, const char *a,
	const char *b, unsigned max, char (*points)[SPLIT_POINT_MAX]);

/*
 * How many keys there may be after `a` up to `b`, for each one between `from`
 * and `a`: a guess by the bytes that were seen. 0: none, or nothing to guess
 * by.
 */
double split_share(const struct split_seen *seen, const char *from,
	const char *a, const char *b);

/*
 * A key without its prefix as a path: 0; 1 for the mark of a directory, whose
 * slash is cut off; -EINVAL for a key that cannot be a path: it has empty, "."
 * or ".." components, or one over 255 bytes.
 */
int key_to_path(char *key, size_t len);

#endif

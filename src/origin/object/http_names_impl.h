/* SPDX-License-Identifier: MIT */
/*
 * Gets the names of an http origin from WebDAV, nginx's JSON or an HTML index,
 * whichever the server has; private to this room.
 */
#ifndef OBJECT_HTTP_NAMES_IMPL_H
#define OBJECT_HTTP_NAMES_IMPL_H

#include "origin/object/object_impl.h"

/* Any thread. */
void names_stat(struct remote *r, struct origin_stat *s);
void names_list(struct remote *r, struct origin_list *l);

/* Only whether there is an index: batch() gets no entries, and no file is asked
 * for. */
void names_probe(struct remote *r, struct origin_list *l);

/* The names of one directory, as an index has them. */
struct index_name {
	char *name; /* decoded, without slashes */
	bool is_dir, has_size;
	uint64_t size_bytes, tag;
	int64_t mtime_ns;
};

struct index_names {
	struct index_name *at;
	size_t n, room;
	size_t bad;	/* entries that cannot be files of this directory */
	char *bad_name; /* of the first */
	bool failed;
};

void index_release(struct index_names *x);

/* 0 or -EBADMSG. `path` is the directory's, encoded, for absolute links. */
int index_from_dav(
	struct index_names *x, const char *path, const char *doc, size_t len);
int index_from_json(struct index_names *x, const char *doc, size_t len);
int index_from_html(
	struct index_names *x, const char *path, const char *doc, size_t len);

#endif

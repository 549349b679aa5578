/* SPDX-License-Identifier: MIT */
/*
 * Gets the names of an http origin from WebDAV, nginx's JSON or an HTML
 * listing, whichever the server has; private to this room.
 */
#ifndef OBJECT_HTTP_NAMES_IMPL_H
#define OBJECT_HTTP_NAMES_IMPL_H

#include "origin/object/object_impl.h"

/* Any thread. */
void names_stat(struct object_origin *r, struct origin_stat *s);
void names_list(struct object_origin *r, struct origin_list *l);

/* Find out only whether there is a listing: batch() gets no entries, and no
 * file is asked for. */
void names_probe(struct object_origin *r, struct origin_list *l);

/* The names of one directory, as a listing has them. */
struct listing_name {
	char *name; /* decoded, without slashes */
	bool is_dir, has_size;
	bool fails; /* the server has only errors for it */
	bool again; /* private to http_sizes.c */
	uint64_t size_bytes, tag;
	int64_t mtime_ns;
};

#define LISTING_NAMES_MAX ((size_t)1 << 24)

struct listing_names {
	struct listing_name *at;
	size_t n, room;
	size_t bad;	/* entries that cannot be files of this directory */
	char *bad_name; /* of the first */
	bool failed;
};

void listing_release(struct listing_names *x);

/* 0 or -EBADMSG. `path` is the directory's, encoded, for absolute links. */
int listing_from_dav(
	struct listing_names *x, const char *path, const char *doc, size_t len);
int listing_from_json(struct listing_names *x, const char *doc, size_t len);
int listing_from_html(
	struct listing_names *x, const char *path, const char *doc, size_t len);

/* -- http_sizes.c: files whose index has no sizes -------------------------- */

/* A request for a size: HEAD, or a GET of the first byte where HEAD does not
 * return the size. */
void size_call_init(struct call *c, struct object_origin *r,
	const struct call_ops *ops, bool by_get);

/* Start the call again as a GET if HEAD was refused, failed, or returned no
 * size, as Apache's does for an empty file. Returns whether it did. */
bool size_by_get(struct call *c, int status);

/* Returns 0 and the version from the headers, or -ENOENT if they have no size.
 */
int size_answered(const struct call *c, int status, struct file_version *v);

#define SIZES_PARALLEL 16u

struct size_head {
	struct call call;
	struct sizes *s; /* NULL: unused */
	size_t which;
	unsigned round; /* of its last request */
};

/* Zero it, and set what the caller sets. Loop thread. */
struct sizes {
	/* Set by the caller. */
	struct object_origin *r;
	struct loop *loop;
	const char *dir;
	struct listing_names *names;
	/* 0: files without a size cannot be served; or -errno. May free `s`. */
	void (*done)(struct sizes *s, int status);
	/* Private. */
	size_t next; /* place in this round's order */
	unsigned round, heads, in_a_row;
	size_t failed, again; /* files of this round */
	int failure;	      /* the first of this round */
	int status;	      /* the status that ends the look-up */
	struct size_head head[SIZES_PARALLEL];
};

/* Ask for the sizes of all files without one. */
void sizes_ask(struct sizes *s);

#endif

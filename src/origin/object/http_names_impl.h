/* SPDX-License-Identifier: MIT */
/*
 * Gets the names of an http origin from WebDAV, nginx's JSON or an HTML
 * listing, whichever the server has; private to this room.
 */
#ifndef OBJECT_HTTP_NAMES_IMPL_H
#define OBJECT_HTTP_NAMES_IMPL_H

#include "origin/object/object_impl.h"

/* Look up one name. Any thread. */
void names_stat(struct object_origin *r, struct origin_stat *s);
void names_list(struct object_origin *r, struct origin_list *l);

/* Find out whether there is a listing, and nothing else: batch() gets no
 * entries, and no file's size is asked for. */
void names_probe(struct object_origin *r, struct origin_list *l);

/* The names of one directory, as a listing has them. */
struct listing_name {
	char *name; /* decoded, without slashes */
	bool is_dir, has_size;
	bool fails; /* the server answers only with errors */
	bool again; /* private to http_sizes.c */
	uint64_t size_bytes, tag;
	int64_t mtime_ns;
};

#define LISTING_NAMES_MAX ((size_t)1 << 24)

struct listing_names {
	struct listing_name *at;
	size_t n, room;
	/* number of entries that cannot be files of this directory */
	size_t bad;
	char *bad_name; /* name of the first of them */
	bool failed;
};

void listing_release(struct listing_names *x);

/* Parse a listing. Returns 0 or -EBADMSG. `path` is the path of the directory,
 * encoded; absolute links begin with it. */
int listing_from_dav(
	struct listing_names *x, const char *path, const char *doc, size_t len);
int listing_from_json(struct listing_names *x, const char *doc, size_t len);
int listing_from_html(
	struct listing_names *x, const char *path, const char *doc, size_t len);

/* -- http_sizes.c: files whose index has no sizes -------------------------- */

/* Prepare a request for a size: HEAD, or a GET of the first byte where HEAD
 * does not return the size. */
void size_call_init(struct call *c, struct object_origin *r,
	const struct call_ops *ops, bool by_get);

/* Repeat the call as a GET if HEAD was refused, failed, or returned no size, as
 * Apache's does for an empty file. Returns true if the call was repeated. */
bool size_by_get(struct call *c, int status);

/* Get the version from the headers. Returns 0, or -ENOENT if they have no size.
 */
int size_answered(const struct call *c, int status, struct file_version *v);

#define SIZES_PARALLEL 16u

struct size_head {
	struct call call;
	struct sizes *s; /* the look-up it belongs to; NULL: unused */
	size_t which;
	unsigned round; /* round of its last request */
};

/* A look-up of sizes on a loop's thread. Zero it, and set the first members. */
struct sizes {
	/* Set by the caller. */
	struct object_origin *r;
	struct loop *loop;
	const char *dir;
	struct listing_names *names;
	/* status 0: the look-up is complete, and files without a size cannot be
	 * served; or -errno. May free `s`. */
	void (*done)(struct sizes *s, int status);
	/* Private. */
	size_t next; /* index in this round's order */
	unsigned round, heads, in_a_row;
	size_t failed, again; /* numbers of files in this round */
	int failure;	      /* first failure in this round */
	int status;	      /* the status that ends the look-up */
	struct size_head head[SIZES_PARALLEL];
};

/* Ask for the sizes of all files without one. */
void sizes_ask(struct sizes *s);

#endif

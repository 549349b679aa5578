/* SPDX-License-Identifier: MIT */
/* Gets the names of an http origin from WebDAV, nginx's JSON or an HTML
 * listing, whichever the server has. Private to this room. */
#ifndef OBJECT_HTTP_NAMES_IMPL_H
#define OBJECT_HTTP_NAMES_IMPL_H

#include "origin/object/object_impl.h"

/* Look up one name. Any thread. */
void names_stat(struct object_origin *r, struct origin_stat *s);
void names_list(struct object_origin *r, struct origin_list *l);

/* Find out whether there is a listing, and nothing else: batch() gets no
 * entries, and no sizes of files are requested. */
void names_probe(struct object_origin *r, struct origin_list *l);

/* The names of one directory, as a listing has them. */
struct listing_name {
	char *name; /* decoded, without slashes */
	bool is_dir, has_size;
	bool fails; /* the server answers every request with an error */
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

/* Repeat the call as a GET if HEAD was refused, failed, or returned no size.
 * For example, Apache returns none for an empty file. Returns true if the call
 * was repeated. */
bool size_by_get(struct call *c, int status);

/* Get the version from the headers. Returns 0, or -ENOENT if they have no size.
 */
int size_answered(const struct call *c, int status, struct file_version *v);

#define SIZES_PARALLEL 16u

struct size_head {
	struct call call;
	/* the look-up to which the request belongs; NULL: unused */
	struct sizes *s;
	size_t which;
	unsigned round; /* number of the round of the file's last request */
};

/* Looks up sizes on a loop's thread. The caller zeroes the struct, and sets the
 * first members. */
struct sizes {
	/* Set by the caller. */
	struct object_origin *r;
	struct loop *loop;
	const char *dir;
	struct listing_names *names;
	/* status 0: the look-up is complete, and files without a size cannot be
	 * served; or -errno. May free `s`. */
	void (*done)(struct sizes *s, int status);
	/* The members below are private. */
	size_t next; /* index of the next file, in this round's order */
	unsigned round, heads, in_a_row;
	size_t failed, again; /* numbers of files of this round */
	int failure;	      /* status of the first failure of this round */
	int status;	      /* the status that ends the look-up */
	struct size_head head[SIZES_PARALLEL];
};

/* Request the sizes of all files without one. */
void sizes_ask(struct sizes *s);

#endif

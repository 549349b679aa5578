/* SPDX-License-Identifier: MIT */
/* A growing string for requests and answers. If an allocation fails, the string
 * is marked as failed, and the caller checks this once, at the end. One owner,
 * no locks. */
#ifndef WEB_BODY_H
#define WEB_BODY_H

#include <stdbool.h>
#include <stddef.h>

/* All members are private. */
struct bytes {
	char *at; /* NUL-terminated, or NULL while empty */
	size_t len, room;
	/* memory was short, or the string became longer than its maximum */
	bool failed;
};

/* The maximum length of a string. */
#define BYTES_MAX ((size_t)64 << 20)

void bytes_add(struct bytes *b, const void *data, size_t len);
void bytes_text(struct bytes *b, const char *text);
void bytes_char(struct bytes *b, char c);
void bytes_printf(struct bytes *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Make the string empty, but keep its memory. */
void bytes_reset(struct bytes *b);
void bytes_release(struct bytes *b);

/* Append the content of a file of at most 1 MiB, without white space at its
 * end. Returns 0 or -errno. */
int bytes_read_file(const char *path, struct bytes *b);

/* Overwrite the content, because it is a secret; call this before releasing the
 * string. */
void bytes_wipe(struct bytes *b);

/* Returns the text; "" while it is empty. */
static inline const char *bytes_get(const struct bytes *b)
{
	return b->at ? b->at : "";
}

/* Returns the text, which the caller may change in place; NULL while it is
 * empty. */
static inline char *bytes_edit(struct bytes *b)
{
	return b->at;
}

/* Returns the text, which the caller frees; NULL if an allocation failed. */
char *bytes_take(struct bytes *b);

static inline size_t bytes_len(const struct bytes *b)
{
	return b->len;
}

static inline bool bytes_failed(const struct bytes *b)
{
	return b->failed;
}

/* Mark the string as failed, because a part of it could not be computed. */
static inline void bytes_fail(struct bytes *b)
{
	b->failed = true;
}

/* Append `text` percent-encoded as AWS and RFC 3986 specify: unreserved
 * characters stay as they are, all others become upper-case hexadecimal. With
 * keep_slash, '/' also stays. */
void bytes_encode(
	struct bytes *b, const char *text, size_t len, bool keep_slash);

/*
 * Decode percent-encoding in place; with `plus`, '+' stands for a blank.
 * Returns the length, or -1 for a malformed sequence or a NUL byte.
 */
int bytes_decode(char *text, bool plus);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Reads small JSON documents in one pass, without building a tree and without
 * memory of its own. The bytes may be hostile: nesting is bounded, and nothing
 * outside them is read. Pure functions; any thread.
 *
 * Each json_take_...() takes the next value if it is of that kind. False: it is
 * of another kind, or malformed.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects and arrays around a value. */
#define JSON_DEPTH_MAX 16u
/* The names of members with their NUL; longer ones become "". */
#define JSON_NAME_MAX 128u

struct json_scan {
	const char *at, *end;
	unsigned depth;
};

static inline struct json_scan json_scan(const char *text, size_t len)
{
	return (struct json_scan){text, text + len, 0};
}

/* Nothing but blanks follows. */
bool json_is_over(struct json_scan *s);

/* Call `fn` for each member or element, which takes its value. If `fn` returns
 * false, so does this. */
typedef bool json_member_fn(struct json_scan *s, const char *name, void *arg);
typedef bool json_element_fn(struct json_scan *s, void *arg);
bool json_take_object(struct json_scan *s, json_member_fn *fn, void *arg);
bool json_take_array(struct json_scan *s, json_element_fn *fn, void *arg);

/* A string with its NUL; "" if there is no room. One that contains NUL is
 * malformed. */
bool json_take_text(struct json_scan *s, char *text, size_t room);
/* Any number; *value is UINT64_MAX for a fraction or a number too large. */
bool json_take_number(struct json_scan *s, uint64_t *value);
bool json_take_bool(struct json_scan *s, bool *value);
bool json_take_null(struct json_scan *s);

/* Any value. */
bool json_skip(struct json_scan *s);

/* -- Whole documents ------------------------------------------------------- */

/*
 * Called for each string, number, true, false and null that is the value of a
 * key, as text; and with value NULL when an object ends. `depth` counts the
 * objects around it, from 1.
 */
typedef void json_value_fn(
	void *arg, unsigned depth, const char *key, const char *value);

/* 0; -EBADMSG for malformed JSON, deep nesting, or text after it. */
int json_walk(const char *text, size_t len, json_value_fn *fn, void *arg);

/*
 * Find the value of a key, whichever case its letters have: SSO writes
 * accessKeyId, all others AccessKeyId. If several objects have the key, the one
 * that the fewest objects surround counts, and the first of those. Values that
 * are too long do not count. `out` is "" if there is none. -EBADMSG as above.
 */
int json_find(
	const char *text, size_t len, const char *key, char *out, size_t size);

#endif

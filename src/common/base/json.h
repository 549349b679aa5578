/* SPDX-License-Identifier: MIT */
/*
 * Reads small JSON documents in one pass, without building a tree and without
 * allocating memory. The bytes may come from an attacker: nesting is limited,
 * and nothing outside of the bytes is read. Pure functions; any thread.
 *
 * Each json_take_...() takes the next value if the value is of that kind, and
 * returns false if it is of another kind or malformed.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of objects and arrays around a value. */
#define JSON_DEPTH_MAX 16u
/* Maximum length of a member's name, with its NUL. The callback gets "" in
 * place of a longer name. */
#define JSON_NAME_MAX 128u

struct json_scan {
	const char *at, *end;
	unsigned depth;
};

static inline struct json_scan json_scan(const char *text, size_t len)
{
	return (struct json_scan){text, text + len, 0};
}

/* Do only blanks follow? */
bool json_is_over(struct json_scan *s);

/* Call `fn` for each member or element; `fn` must take its value. Returns false
 * as soon as `fn` returns false, or if the object or array is malformed. */
typedef bool json_member_fn(struct json_scan *s, const char *name, void *arg);
typedef bool json_element_fn(struct json_scan *s, void *arg);
bool json_take_object(struct json_scan *s, json_member_fn *fn, void *arg);
bool json_take_array(struct json_scan *s, json_element_fn *fn, void *arg);

/* Take a string, and add a NUL. If `room` is too small, `text` is "". A string
 * that contains a NUL counts as malformed. */
bool json_take_text(struct json_scan *s, char *text, size_t room);
/* Take a number. *value is UINT64_MAX if the number is a fraction or too large.
 */
bool json_take_number(struct json_scan *s, uint64_t *value);
/* Take any number, as the nearest double. Returns false also if the number is
 * too large. */
bool json_take_real(struct json_scan *s, double *value);
bool json_take_bool(struct json_scan *s, bool *value);
bool json_take_null(struct json_scan *s);

/* Take and drop any value. */
bool json_skip(struct json_scan *s);

/* -- Whole documents ------------------------------------------------------- */

/* Called with each string, number, true, false and null that is the value of a
 * key, as text. Also called with value NULL when an object ends. `depth` is the
 * number of objects around the value, at least 1. */
typedef void json_value_fn(
	void *arg, unsigned depth, const char *key, const char *value);

/* Walk a document. Returns 0, or -EBADMSG if it is malformed or nested too
 * deeply, or if text follows it. */
int json_walk(const char *text, size_t len, json_value_fn *fn, void *arg);

/*
 * Find the value of a key. The case of letters does not matter, because SSO
 * writes accessKeyId and all others AccessKeyId. If several objects have the
 * key, the value with the fewest objects around it counts; if there are several
 * of these, the first one. Values that are too long do not count. `out` is ""
 * if no value counts. Returns 0, or -EBADMSG like json_walk().
 */
int json_find(
	const char *text, size_t len, const char *key, char *out, size_t size);

#endif

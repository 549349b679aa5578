/* SPDX-License-Identifier: MIT */
/*
 * Reads small JSON documents in one pass, without building a tree and without
 * allocating memory. The bytes may be hostile: nesting is bounded, and nothing
 * outside them is read. Pure functions; any thread.
 *
 * Each json_take_...() takes the next value if it is of that kind, and returns
 * false if it is of another kind or malformed.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects and arrays around a value. */
#define JSON_DEPTH_MAX 16u
/* Maximum length of a member's name, with its NUL. A longer name is handed out
 * as "". */
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

/* Take a string with its NUL; "" if there is no room. A string that contains
 * NUL is malformed. */
bool json_take_text(struct json_scan *s, char *text, size_t room);
/* Take a number. *value is UINT64_MAX for a fraction or a number too large. */
bool json_take_number(struct json_scan *s, uint64_t *value);
/* Any number, as the nearest double. False, too, if it is malformed or too
 * large. */
bool json_take_real(struct json_scan *s, double *value);
bool json_take_bool(struct json_scan *s, bool *value);
bool json_take_null(struct json_scan *s);

/* Take and drop any value. */
bool json_skip(struct json_scan *s);

/* -- Whole documents ------------------------------------------------------- */

/*
 * Called with each string, number, true, false and null that is the value of a
 * key, as text, and with value NULL when an object ends. `depth` counts the
 * objects around the value, from 1.
 */
typedef void json_value_fn(
	void *arg, unsigned depth, const char *key, const char *value);

/* Returns 0, or -EBADMSG for malformed JSON, deep nesting, or text after it. */
int json_walk(const char *text, size_t len, json_value_fn *fn, void *arg);

/*
 * Find the value of a key, whichever case its letters have: SSO writes
 * accessKeyId, all others AccessKeyId. If several objects have the key, the
 * value with the fewest objects around it counts, and the first of several such
 * values. Values that are too long do not count. `out` is "" if no value
 * counts. Returns 0, or -EBADMSG as json_walk() does.
 */
int json_find(
	const char *text, size_t len, const char *key, char *out, size_t size);

#endif

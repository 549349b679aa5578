/* SPDX-License-Identifier: MIT */
/*
 * Reads small JSON documents from services and servers in one pass, without
 * building a tree.
 */
#ifndef WEB_CREDS_JSON_H
#define WEB_CREDS_JSON_H

#include <stddef.h>

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
 * The value of a key, of the first in the fewest objects, in either case: SSO
 * writes accessKeyId, all others AccessKeyId. "" if there is none or it is too
 * long. -EBADMSG for malformed JSON.
 */
int json_find(
	const char *text, size_t len, const char *key, char *out, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Reads a JSON file of any size in little memory: one value after the other is
 * given out as a whole, and what is not wanted is passed over. A value that is
 * given out may have JSON_VALUE_MAX bytes. One thread.
 */
#ifndef DATASET_JSON_FILE_IMPL_H
#define DATASET_JSON_FILE_IMPL_H

#include "common/base/err.h"
#include "common/base/json.h"

#define JSON_VALUE_MAX ((size_t)16 << 20)

struct json_file {
	int fd;
	char *data;
	size_t at, have, room;
	uint64_t before; /* bytes of the file before `data` */
	const char *path;
	struct error *err;
};

/* Begin a file that the caller has opened, and whose path is for messages. */
void json_file_init(
	struct json_file *f, int fd, const char *path, struct error *err);
void json_file_release(struct json_file *f);

/* Set the message: the path, the byte that is next, and what is wrong there.
 * Returns `rc`. */
int json_file_fail(struct json_file *f, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Take this character, after blanks. 1 if it was there, 0 if another one was;
 * or -errno. */
int json_file_take(struct json_file *f, char c);

/* Take the next value, whole, and set *out to it; it is valid until the next
 * call. NULL: pass over it. -EBADMSG if it ends too early, -E2BIG if it is too
 * long, or -errno. */
int json_file_value(struct json_file *f, struct json_scan *out);

/* Is anything left but blanks? As json_file_take(). */
int json_file_is_over(struct json_file *f);

#endif

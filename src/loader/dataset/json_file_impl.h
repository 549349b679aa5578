/* SPDX-License-Identifier: MIT */
/* Reads a JSON file of any size in little memory. The caller gets one value
 * after another, each as a whole, and skips those that it does not need. A
 * value may have JSON_VALUE_MAX bytes. One thread. */
#ifndef DATASET_JSON_FILE_IMPL_H
#define DATASET_JSON_FILE_IMPL_H

#include "common/base/err.h"
#include "common/base/json.h"

#define JSON_VALUE_MAX ((size_t)16 << 20)

struct json_file {
	int fd;
	char *data;
	size_t at, have, room;
	uint64_t before; /* number of bytes of the file before `data` */
	const char *path;
	struct error *err;
};

/* Begin to read a file. The caller has opened it, and keeps it open; the path
 * is for messages. */
void json_file_init(
	struct json_file *f, int fd, const char *path, struct error *err);
void json_file_release(struct json_file *f);

/* Set the message: the path, the number of the next byte, and what is wrong
 * there. Returns `rc`. */
int json_file_fail(struct json_file *f, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Skip blanks, and take the next character if it is `c`. Returns 1 if it was
 * taken, 0 if another character follows, or -errno. */
int json_file_take(struct json_file *f, char c);

/* Take the next value, and set *out to it; it is valid until the next call. If
 * `out` is NULL, skip the value. Returns 0, -EBADMSG if it is incomplete,
 * -E2BIG if it is too long, or another -errno. */
int json_file_value(struct json_file *f, struct json_scan *out);

/* Do only blanks follow? Returns like json_file_take(). */
int json_file_is_over(struct json_file *f);

#endif

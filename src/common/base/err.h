/* SPDX-License-Identifier: MIT */
/* Error messages of cold paths. A function takes a caller-owned `struct error
 * *` as its last argument if a person should read why it failed. It sets the
 * message where the cause is known, and its callers add context. Every such
 * function also returns -errno; hot paths use only that. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct error {
	char msg[1024];
};

/*
 * Set the message and return `code` (a negative errno), so that `return
 * error_set(err, -EINVAL, "...")` is possible. A NULL err is allowed. %m in the
 * format stands for the text of -code. Messages are lower case, have no full
 * stop, and end with what to do where that is not obvious. The message is one
 * printable line, even if it quotes other bytes (common/base/escape.h).
 */
int error_set(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "context: " before the message; returns `code`. */
int error_wrap(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif

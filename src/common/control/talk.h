/* SPDX-License-Identifier: MIT */
/* A conversation with the daemon of a mount over its control socket: requests
 * and answers are lines. The caller writes and parses the lines, so the loader
 * needs no JSON library. One thread at a time uses a conversation; another
 * thread can end its wait by shutting `fd` down. */
#ifndef CONTROL_TALK_H
#define CONTROL_TALK_H

#include <stdint.h>
#include <sys/types.h>

#include "common/control/line.h"

/* The attribute of a mount's root whose value is the path of its socket. */
#define TALK_XATTR "user.refrain.control"

struct talk {
	int fd; /* non-blocking */
	struct lines in;
};

/* Connect to a socket. A line of an answer may have up to max_bytes. Returns 0,
 * -EAGAIN if the daemon does not accept connections just now, or another
 * -errno. */
int talk_open(struct talk *t, const char *path, size_t max_bytes);

/* Check which user serves the socket. Returns 0, or -EPERM if it is neither
 * `owner` nor root. */
int talk_check_owner(const struct talk *t, uid_t owner);

/* Returns the process at the other end; 0 if its namespace hides it from this
 * process. */
pid_t talk_pid(const struct talk *t);

/* Close the conversation. May be called twice. */
void talk_close(struct talk *t);

/* Send a whole line, with its newline. Returns 0, or -EPIPE if the daemon is
 * gone or does not read. After -EPIPE, the caller can only receive. */
int talk_send(struct talk *t, const char *line, size_t bytes);

/* Wait for the next line. A NUL replaces its newline, and the line is valid
 * until the next call. Returns 0; -ETIMEDOUT if no line came within timeout_ms
 * (-1: no limit), and the caller may wait again; -EPIPE if the daemon closed
 * the connection; or -EMSGSIZE if the line is too long. */
int talk_wait(struct talk *t, int timeout_ms, char **line, size_t *bytes);

/* Wait until the descriptor is readable. Returns 1 if there are bytes or the
 * other end closed the connection, 0 on a time-out, or -errno. */
int talk_wait_readable(int fd, int timeout_ms);

#endif

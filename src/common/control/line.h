/* SPDX-License-Identifier: MIT */
/* Receives lines that arrive on a descriptor in pieces, and sends whole lines.
 * Both ends of the control socket use this. Owned by one thread. */
#ifndef CONTROL_LINE_H
#define CONTROL_LINE_H

#include <stdbool.h>
#include <stddef.h>

/* Received bytes. The caller sets max_bytes, zeroes the rest, and calls
 * lines_release() at the end. */
struct lines {
	size_t max_bytes; /* maximum length of a line, without its newline */
	char *data;
	size_t start, used; /* data[start] to data[used - 1] are unread */
	size_t room;
};

/* Read once from the descriptor. Returns the number of bytes, 0 at the end of
 * the stream, -EAGAIN if there are none now, another -errno of read(), or
 * -EMSGSIZE if a line is longer than max_bytes. Lines that lines_next() has
 * returned become invalid. */
int lines_fill(struct lines *l, int fd);

/* Get the next complete line, with a NUL in place of its newline. Returns false
 * if there is none. The line may contain further NULs. */
bool lines_next(struct lines *l, char **line, size_t *len);

/* Is there an incomplete line? Call this after lines_next() has returned false.
 */
bool lines_partial(const struct lines *l);

void lines_release(struct lines *l);

/* Send all bytes to a non-blocking socket. Returns 0; or -EPIPE if the peer is
 * gone, if it accepts no bytes for timeout_ms, or if the descriptor stop_fd
 * becomes readable before (-1: no such descriptor). */
int line_send(
	int fd, const char *data, size_t len, int stop_fd, int timeout_ms);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Receives lines that arrive on a descriptor in pieces, and sends whole lines;
 * for both ends of the control socket. Owned by one thread.
 */
#ifndef CONTROL_LINE_H
#define CONTROL_LINE_H

#include <stdbool.h>
#include <stddef.h>

/* Set max_bytes, zero the rest; release with lines_release(). */
struct lines {
	size_t max_bytes; /* of a line, without its newline */
	char *data;
	size_t start, used; /* what is unread: data[start] to data[used - 1] */
	size_t room;
};

/*
 * Read once from the descriptor. Returns the number of bytes, 0 at its end,
 * -EAGAIN as read(), or -EMSGSIZE if a line is longer than max_bytes.
 * Invalidates lines returned before.
 */
int lines_fill(struct lines *l, int fd);

/*
 * The next complete line, its newline replaced by NUL; false if there is
 * none. It may hold other NULs.
 */
bool lines_next(struct lines *l, char **line, size_t *len);

/* Is there an incomplete line? Meaningful after lines_next() failed. */
bool lines_partial(const struct lines *l);

void lines_release(struct lines *l);

/*
 * Send all of it to a non-blocking socket. Returns 0, or -EPIPE if the peer is
 * gone or accepts nothing for timeout_ms, or if the descriptor stop_fd (if not
 * -1) becomes readable while waiting.
 */
int line_send(
	int fd, const char *data, size_t len, int stop_fd, int timeout_ms);

#endif

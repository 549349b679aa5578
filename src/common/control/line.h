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
	size_t max_bytes; /* maximum length of a line, without its newline */
	char *data;
	size_t start, used; /* data[start] to data[used - 1] are unread */
	size_t room;
};

/*
 * Read once from the descriptor. Returns the number of bytes, 0 at the end of
 * the stream, -EAGAIN if there are none now, another -errno of read(), or
 * -EMSGSIZE if a line is longer than max_bytes. Lines returned before become
 * invalid.
 */
int lines_fill(struct lines *l, int fd);

/*
 * Get the next complete line, its newline replaced by NUL. Returns false if
 * there is none. The line may contain other NULs.
 */
bool lines_next(struct lines *l, char **line, size_t *len);

/* Is there an incomplete line? Meaningful after lines_next() failed. */
bool lines_partial(const struct lines *l);

void lines_release(struct lines *l);

/*
 * Send all bytes to a non-blocking socket. Returns 0, or -EPIPE if the peer is
 * gone or accepts nothing for timeout_ms, or if the descriptor stop_fd (unless
 * it is -1) becomes readable meanwhile.
 */
int line_send(
	int fd, const char *data, size_t len, int stop_fd, int timeout_ms);

#endif

/* SPDX-License-Identifier: MIT */
/* Receives and sends lines; one thread owns each buffer. */
#include "common/control/line.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base/array.h"

#define READ_BYTES ((size_t)4096)

/* Move the unread bytes to the beginning of the buffer, and make room for at
 * least READ_BYTES more. */
static int line_make_room(struct lines *l)
{
	if (l->start > 0) {
		l->used -= l->start;
		memmove(l->data, l->data + l->start, l->used);
		l->start = 0;
	}
	if (l->used > l->max_bytes)
		return -EMSGSIZE;
	return ARRAY_ROOM(l->data, l->used + READ_BYTES, &l->room);
}

int lines_fill(struct lines *l, int fd)
{
	int rc = line_make_room(l);
	/* position of the newline of the longest line */
	size_t end = l->max_bytes + 1;
	ssize_t n;

	if (rc < 0)
		return rc;
	if (end > l->room)
		end = l->room;
	do
		n = read(fd, l->data + l->used, end - l->used);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	l->used += (size_t)n;
	return (int)n;
}

bool lines_next(struct lines *l, char **line, size_t *len)
{
	char *from, *end;

	if (l->start == l->used)
		/* there are no unread bytes */
		return false;
	from = l->data + l->start;
	end = memchr(from, '\n', l->used - l->start);
	if (!end)
		return false;
	*end = '\0';
	*line = from;
	*len = (size_t)(end - from);
	l->start += *len + 1;
	return true;
}

bool lines_partial(const struct lines *l)
{
	return l->start < l->used;
}

void lines_release(struct lines *l)
{
	free(l->data);
	l->data = NULL;
	l->start = l->used = l->room = 0;
}

/* Wait until the socket accepts more bytes. */
static int wait_writable(int fd, int stop_fd, int timeout_ms)
{
	struct pollfd fds[2] = {
		{.fd = fd, .events = POLLOUT},
		{.fd = stop_fd, .events = POLLIN},
	};
	int n;

	do
		n = poll(fds, 2, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n > 0 && !fds[1].revents ? 0 : -EPIPE;
}

int line_send(int fd, const char *data, size_t len, int stop_fd, int timeout_ms)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			if (wait_writable(fd, stop_fd, timeout_ms) < 0)
				return -EPIPE;
		} else if (errno != EINTR) {
			return -EPIPE;
		}
	}
	return 0;
}

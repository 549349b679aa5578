/* SPDX-License-Identifier: MIT */
/*
 * One conversation with a mount's daemon: a line goes out, a line comes back.
 * Nothing here waits longer than it was told to. One thread a talk; shutting
 * the socket down from elsewhere ends every wait.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mountinfo.h"
#include "mount_help/help_impl.h"

#define LINE_MAX_BYTES ((size_t)2 << 20)
#define SEND_MS 10000

int talk_open(struct talk *t, const char *path, uid_t owner)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	CLEANUP_FD int fd = -1;
	int rc;

	if (strlen(path) >= sizeof(name.sun_path))
		return -ENAMETOOLONG;
	memcpy(name.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return -errno;
	rc = mountinfo_check_peer(fd, owner);
	if (rc < 0)
		return rc;
	*t = (struct talk){.fd = steal_fd(&fd)};
	return 0;
}

void talk_close(struct talk *t)
{
	if (t->fd >= 0)
		(void)close(t->fd); /* all was sent that had to be */
	free(t->in);
	*t = (struct talk){.fd = -1};
}

static int wait_until(int fd, short events, uint64_t until_ns)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now_ns = clock_now_ns();
	int rc;

	if (now_ns >= until_ns)
		return -ETIMEDOUT;
	rc = poll(&p, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
	return rc < 0 && errno != EINTR ? -errno : 0;
}

int talk_send(struct talk *t, const char *request, size_t bytes)
{
	uint64_t until_ns = clock_now_ns() + SEND_MS * NS_PER_MS;
	int rc = 0;

	while (rc == 0 && bytes > 0) {
		ssize_t n = send(t->fd, request, bytes, MSG_NOSIGNAL);

		if (n >= 0) {
			request += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) {
			rc = wait_until(t->fd, POLLOUT, until_ns);
		} else if (errno != EINTR) {
			rc = -errno;
		}
	}
	return rc;
}

/* 1: some bytes came. 0: none are there. -errno. */
static int receive(struct talk *t)
{
	ssize_t n;

	if (t->got == t->room) {
		size_t room = t->room ? t->room * 2 : 4096;
		char *in = room <= LINE_MAX_BYTES ? realloc(t->in, room) : NULL;

		if (!in)
			return -EMSGSIZE;
		t->in = in;
		t->room = room;
	}
	n = recv(t->fd, t->in + t->got, t->room - t->got, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	t->got += (size_t)n;
	return n ? 1 : -EPIPE;
}

int talk_wait(struct talk *t, int timeout_ms, const char **line, size_t *bytes)
{
	uint64_t until_ns = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	size_t looked = 0;

	for (;;) {
		char *end = t->got > looked
			? memchr(t->in + looked, '\n', t->got - looked)
			: NULL;
		int rc;

		if (end) {
			*line = t->in;
			*bytes = (size_t)(end - t->in);
			t->got = 0; /* one answer to one request */
			return 0;
		}
		looked = t->got;
		rc = receive(t);
		if (rc == 0)
			rc = wait_until(t->fd, POLLIN, until_ns);
		if (rc < 0)
			return rc;
	}
}

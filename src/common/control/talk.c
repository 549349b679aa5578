/* SPDX-License-Identifier: MIT */
/* The only client of the control socket, for src/analysis/fleet and
 * src/loader/mount_help: it connects, sends and waits. The length of an answer
 * is limited. It starts no thread, and no call waits longer than the caller
 * allows. */
#include "common/control/talk.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/control/unix_socket.h"

#define SEND_MS 10000

int talk_open(struct talk *t, const char *path, size_t max_bytes)
{
	int fd = socket_connect(path, SOCK_STREAM);

	if (fd < 0)
		return fd;
	*t = (struct talk){.fd = fd, .in = {.max_bytes = max_bytes}};
	return 0;
}

int talk_check_owner(const struct talk *t, uid_t owner)
{
	return socket_check_peer(t->fd, owner);
}

pid_t talk_pid(const struct talk *t)
{
	struct ucred peer;

	return socket_peer(t->fd, &peer) ? peer.pid : 0;
}

void talk_close(struct talk *t)
{
	if (t->fd >= 0)
		/* cannot lose data: the caller has sent its requests */
		(void)close(t->fd);
	lines_release(&t->in);
	t->fd = -1;
}

int talk_send(struct talk *t, const char *line, size_t bytes)
{
	return line_send(t->fd, line, bytes, -1, SEND_MS);
}

int talk_wait_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Returns the time until `until_ns`, rounded up. */
static int left_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (until_ns == UINT64_MAX)
		return -1;
	return now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1
				 : 0;
}

int talk_wait(struct talk *t, int timeout_ms, char **line, size_t *bytes)
{
	uint64_t until_ns = timeout_ms < 0
		? UINT64_MAX
		: clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	while (!lines_next(&t->in, line, bytes)) {
		int rc = lines_fill(&t->in, t->fd);

		if (rc == 0 || rc == -ECONNRESET)
			return -EPIPE;
		if (rc < 0 && rc != -EAGAIN)
			return rc;
		if (rc > 0)
			continue;
		rc = talk_wait_readable(t->fd, left_ms(until_ns));
		if (rc <= 0)
			return rc ? rc : -ETIMEDOUT;
	}
	return 0;
}

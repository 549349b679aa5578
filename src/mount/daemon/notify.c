/* SPDX-License-Identifier: MIT */
/*
 * Tells the process that started the daemon its state, and passes descriptors
 * to it, by the protocol of sd_notify(3). Any thread.
 */
#include "mount/daemon/mount_impl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* The text is the only part of the datagram. */
static void notify_send(int to_fd, const struct sockaddr_un *to, size_t len,
	struct iovec *text, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr msg = {
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = (socklen_t)len,
		.msg_iov = text,
		.msg_iovlen = 1,
	};

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	/* An error means that nobody listens, which does no harm. */
	(void)sendmsg(to_fd, &msg, MSG_NOSIGNAL);
}

/* sd_notify(3) sends one datagram to the socket that NOTIFY_SOCKET names. */
void notify_holder(const char *state, int passed)
{
	struct iovec text = {(void *)(uintptr_t)state, strlen(state)};
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	CLEANUP_FD int fd = -1;
	size_t len;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	len = strlen(path);
	if (len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	notify_send(fd, &to, offsetof(struct sockaddr_un, sun_path) + len,
		&text, passed);
}

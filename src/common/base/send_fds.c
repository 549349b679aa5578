/* SPDX-License-Identifier: MIT */
/* Passes descriptors over Unix sockets; see send_fds.h. */
#include "common/base/send_fds.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A buffer for the descriptors and the sender of one message. */
union fds_room {
	char bytes[CMSG_SPACE(sizeof(struct ucred)) +
		CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

ssize_t fds_send(int socket, const void *bytes, size_t size, const int *fds,
	unsigned n, int flags)
{
	union fds_room room = {{0}};
	struct iovec iov = {(void *)(uintptr_t)bytes, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (n > SEND_FDS_MAX)
		return -EINVAL;
	if (n > 0) {
		struct cmsghdr *c;

		msg.msg_control = room.bytes;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	do
		sent = sendmsg(socket, &msg, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

static void take_rights(const struct cmsghdr *c, struct got_fds *got)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd;

	for (size_t i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (got->n < SEND_FDS_MAX) {
			got->fd[got->n++] = fd;
		} else {
			/* close a descriptor that does not fit */
			(void)close(fd);
			got->cut = true;
		}
	}
}

static void take_sender(const struct cmsghdr *c, struct got_fds *got)
{
	struct ucred who;

	memcpy(&who, CMSG_DATA(c), sizeof(who));
	got->pid = who.pid;
	got->uid = who.uid;
}

ssize_t fds_receive(
	int socket, void *bytes, size_t size, struct got_fds *got, int flags)
{
	union fds_room room;
	struct iovec iov = {bytes, size};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof(room)};
	ssize_t n;

	*got = (struct got_fds){.pid = -1, .uid = (uid_t)-1};
	do
		n = recvmsg(socket, &msg, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	got->cut = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
		c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			take_rights(c, got);
		else if (c->cmsg_type == SCM_CREDENTIALS)
			take_sender(c, got);
	}
	return n;
}

void fds_close(struct got_fds *got, unsigned first)
{
	while (got->n > first)
		(void)close(got->fd[--got->n]);
}

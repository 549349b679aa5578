/* SPDX-License-Identifier: MIT */
/*
 * Sends and receives the messages of a share on their socket.
 */
#ifndef SHARE_WIRE_IMPL_H
#define SHARE_WIRE_IMPL_H

#include "loader/share/share.h"

#define WIRE_MAGIC UINT32_C(0x48534652) /* "RFSH" */
#define WIRE_VERSION 3

struct wire_head {
	uint32_t magic;
	uint16_t version, type; /* enum share_type */
	uint32_t bytes;		/* of the message, this head included */
	uint32_t reserved;	/* 0 */
};

#define WIRE_BYTES_MAX (sizeof(struct wire_head) + sizeof(struct share_view))

/* Send without waiting, with a descriptor if fd >= 0. 0, -EAGAIN, -EPIPE. */
int wire_send(int socket_fd, const struct share_msg *msg, int fd);
/* Receive without waiting: 1, -EAGAIN, -EPIPE (the end), -EBADMSG,
 * -EPROTONOSUPPORT. *fd as for share_link_recv(). */
int wire_recv(int socket_fd, struct share_msg *msg, int *fd);
/* Close the socket and shut it down, because a copy in a forked child would
 * keep it open. */
void wire_close(int socket_fd);

#endif

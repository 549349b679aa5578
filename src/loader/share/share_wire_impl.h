/* SPDX-License-Identifier: MIT */
/*
 * Sends and receives the messages of a share on their sockets.
 */
#ifndef SHARE_WIRE_IMPL_H
#define SHARE_WIRE_IMPL_H

#include "loader/share/share.h"

#define WIRE_MAGIC UINT32_C(0x48534652) /* the bytes "RFSH" */
#define WIRE_VERSION 3

struct wire_head {
	uint32_t magic;
	uint16_t version, type; /* enum share_type */
	uint32_t bytes;		/* size of the message with this header */
	uint32_t reserved;	/* must be 0 */
};

#define WIRE_BYTES_MAX (sizeof(struct wire_head) + sizeof(struct share_view))

/* Send a message without waiting, with a descriptor if fd >= 0. Returns 0,
 * -EAGAIN or -EPIPE. */
int wire_send(int socket_fd, const struct share_msg *msg, int fd);
/* Receive a message without waiting. Returns 1, -EAGAIN, -EPIPE at the end,
 * -EBADMSG, or -EPROTONOSUPPORT. *fd is as in share_link_recv(). */
int wire_recv(int socket_fd, struct share_msg *msg, int *fd);
/* Shut the socket down and close it. Closing alone does not end the connection
 * if a forked child has a copy. */
void wire_close(int socket_fd);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The address of a host: "HOST", "HOST:PORT", "[IPV6]:PORT", or the path of a
 * unix socket. A thread looks names up, because that can block; numbers and
 * paths need no lookup. Private to this room.
 */
#ifndef PEER_ADDRESS_IMPL_H
#define PEER_ADDRESS_IMPL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "common/base/err.h"

struct address;

/* Returns 0, or -EINVAL if `host` has none of these forms. */
int address_check(const char *host, struct error *err);
/* Create the address of a host that has passed address_check(). Returns 0 or
 * -ENOMEM. */
int address_new(struct address **out, const char *host);
/* NULL is allowed. A look-up in progress ends by itself. */
void address_free(struct address *a);

/* Get the address, which is valid until the next call. Returns -EAGAIN if the
 * look-up is in progress: call again. Any other -errno: the look-up failed, and
 * the next call starts another. */
int address_get(
	struct address *a, const struct sockaddr **addr, socklen_t *len);

#endif

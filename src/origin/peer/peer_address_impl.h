/* SPDX-License-Identifier: MIT */
/* The address of a host: "HOST", "HOST:PORT", "[IPV6]:PORT", or the path of a
 * unix socket. A separate thread looks names up, because a look-up can block;
 * numbers and paths need none. Private to this room. */
#ifndef PEER_ADDRESS_IMPL_H
#define PEER_ADDRESS_IMPL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "common/base/err.h"

struct address;

/* Check the spelling of a host. Returns 0, or -EINVAL if it has none of these
 * forms. */
int address_check(const char *host, struct error *err);
/* Create the address of a host that has passed address_check(). Returns 0 or
 * -ENOMEM. */
int address_new(struct address **out, const char *host);
/* Free an address. A look-up in progress ends by itself. NULL is allowed. */
void address_free(struct address *a);

/* Get the address, which is valid until the next call. Returns 0; -EAGAIN if
 * the look-up is in progress, so that the caller has to call again later; or
 * another -errno if the look-up failed, and then the next call starts another
 * one. */
int address_get(
	struct address *a, const struct sockaddr **addr, socklen_t *len);

#endif

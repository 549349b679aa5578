/* SPDX-License-Identifier: MIT */
/*
 * The address of a host: "HOST", "HOST:PORT", "[IPV6]:PORT", or the path of a
 * unix socket. A thread looks names up, because that can block; numbers and
 * paths need no lookup.
 */
#ifndef MEMCACHED_ADDRESS_H
#define MEMCACHED_ADDRESS_H

#include <sys/socket.h>

#include "common/base/err.h"

#define ADDRESS_MAX 255u /* maximum length of the text of a host */
/* the port that memcached uses by default */
#define ADDRESS_DEFAULT_PORT 11211u

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

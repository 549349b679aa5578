/* SPDX-License-Identifier: MIT */
/*
 * Where a host is: "HOST", "HOST:PORT", "[IPV6]:PORT", or the path of a unix
 * socket. Names are looked up by a thread, as that can block; numbers and paths
 * at once. Private to src/peer.
 */
#ifndef PEER_ADDRESS_IMPL_H
#define PEER_ADDRESS_IMPL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"

struct address;

/* -EINVAL: not of these forms. */
int address_check(const char *host, struct error *err);
/* The host is right; -ENOMEM. */
int address_new(struct address **out, const char *host);
/* NULL is allowed. A lookup that is going on ends by itself. */
void address_free(struct address *a);

/*
 * The address, lent until the next call. -EAGAIN: it is being looked up; ask
 * again. Other -errno: it was not found; the next call looks again.
 */
int address_get(
	struct address *a, const struct sockaddr **addr, socklen_t *len);

#endif

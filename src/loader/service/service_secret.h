/* SPDX-License-Identifier: MIT */
/* The secret that checksums of samples depend on, and the spelling of boards.
 * Both are the same for readers and workers. */
#ifndef SERVICE_SECRET_H
#define SERVICE_SECRET_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/memcached/memcached_address.h"

#define SERVICE_BOARD_PORT 11213u
#define SERVICE_STORE_PORT 11212u

/* Read a secret: all bytes of a file except a newline at the end. Sets *seed to
 * sample_seed() of it. Returns 0; -EPERM if other users may read the file;
 * -EINVAL if the secret is shorter than 16 bytes; or -errno. */
int service_secret_read(const char *path, uint64_t *seed, struct error *err);

/* Write the address of a server: "HOST" becomes "HOST:PORT", and anything else
 * stays as it is. Returns 0 or -EINVAL. */
int service_address(char out[ADDRESS_MAX + 1], const char *host, unsigned port,
	struct error *err);

#endif

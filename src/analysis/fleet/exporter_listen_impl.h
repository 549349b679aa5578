/* SPDX-License-Identifier: MIT */
/* The socket at which the exporter listens. */
#ifndef FLEET_EXPORTER_LISTEN_IMPL_H
#define FLEET_EXPORTER_LISTEN_IMPL_H

#include "common/base/err.h"

/* Returns the address with an absolute path of the socket, for a process that
 * changes its directory; the caller frees it. NULL with errno set on failure.
 */
char *exporter_address(const char *where);

/* Listen at ADDR:PORT or unix:PATH. Returns a non-blocking descriptor, or
 * -errno. */
int exporter_listen(const char *where, struct error *err);

/* Remove the socket of unix:PATH. */
void exporter_unlisten(const char *where);

#endif

/* SPDX-License-Identifier: MIT */
/* The socket that the exporter listens on. */
#ifndef FLEET_EXPORTER_LISTEN_IMPL_H
#define FLEET_EXPORTER_LISTEN_IMPL_H

#include "common/base/err.h"

/* Listen at ADDR:PORT or unix:PATH. Returns a non-blocking descriptor, or
 * -errno. */
int exporter_listen(const char *where, struct error *err);

/* Remove the socket of unix:PATH. */
void exporter_unlisten(const char *where);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Which names of itself the exporter answers to. A web page can give a name of
 * its own domain the address of this host (DNS rebinding), and its script then
 * may read what the exporter says. So a request must name an address, or a name
 * that only this host has. One thread.
 */
#ifndef FLEET_EXPORTER_NAMES_IMPL_H
#define FLEET_EXPORTER_NAMES_IMPL_H

#include <stdbool.h>

/* May a request that came over TCP have this "Host:"? It is an address,
 * "localhost", the host of the address `listen`, or the host's name, short or
 * full. NULL, a request without it, is allowed: browsers always send it. May
 * ask a name server once. */
bool exporter_host_allowed(const char *host, const char *listen);

#endif

/* SPDX-License-Identifier: MIT */
/* The systemd unit of a memcached that keeps what refrain gives it. */
#ifndef TOOLS_PEERS_UNIT_H
#define TOOLS_PEERS_UNIT_H

/*
 * The value of memcached's slab_chunk_max that makes chunks of 16 KiB, for a
 * version such as "1.6.18"; NULL: it is not known how this version takes it.
 */
const char *peers_unit_chunk(const char *version);

/* Print the unit. `host` is this host as the list names it, or NULL. */
void peers_unit_print(const char *host);

#endif

/* SPDX-License-Identifier: MIT */
/* Prints a systemd unit for a memcached that never drops items of refrain. */
#ifndef TOOLS_PEERS_UNIT_H
#define TOOLS_PEERS_UNIT_H

/*
 * The value of memcached's slab_chunk_max that makes chunks of 16 KiB, for a
 * version such as "1.6.18"; NULL if the format for this version is unknown.
 */
const char *peers_unit_chunk(const char *version);

/* Print the unit. `host` is this host as the list names it, or NULL. */
void peers_unit_print(const char *host);

#endif

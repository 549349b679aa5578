/* SPDX-License-Identifier: MIT */
/* Prints a systemd unit for a memcached that never evicts chunks of refrain. */
#ifndef TOOLS_PEERS_UNIT_H
#define TOOLS_PEERS_UNIT_H

/* Print the unit. `host` is this host as the list spells it, or NULL. */
void peers_unit_print(const char *host);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Parses a server's answers to `version`, `stats settings` and `stats`, and
 * decides whether it can be trusted never to drop an item. Pure functions.
 * Private to this room.
 */
#ifndef PEER_SERVER_IMPL_H
#define PEER_SERVER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server {
	char version[32];
	uint64_t used_bytes, capacity_bytes, evictions, items;
	uint64_t item_max_bytes;
	/* Settings. A setting that the server does not mention counts as
	 * correct. */
	bool evicts; /* without -M, the server evicts */
	bool moves;  /* slab_reassign */
	bool extstore;
	bool has_settings; /* the server has sent its settings */
};

/* Forget the settings, before the server is asked for them. */
void server_init(struct server *s);
/* Take the text of VERSION. */
void server_version(struct server *s, const char *text, size_t len);
/* Take "NAME VALUE" of a STAT line of `stats settings` or `stats`. */
void server_stat(struct server *s, const char *text, size_t len);
/* Returns NULL if the server can be used, otherwise the reason why not and the
 * remedy. */
const char *server_fault(const struct server *s);

#endif

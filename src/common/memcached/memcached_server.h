/* SPDX-License-Identifier: MIT */
/*
 * Parses a server's answers to `version`, `stats settings` and `stats`, and
 * decides whether the server can be trusted never to drop an item. Pure
 * functions.
 */
#ifndef MEMCACHED_SERVER_H
#define MEMCACHED_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server {
	char version[32];
	uint64_t used_bytes, capacity_bytes, evictions, items;
	uint64_t item_max_bytes;
	/* Settings. If the server does not mention one, it counts as correct.
	 */
	bool evicts; /* started without -M: the server evicts items */
	bool moves;  /* slab_reassign is on */
	bool extstore;
	bool has_settings; /* the server has sent its settings */
};

/* Forget the settings; call this before asking the server for them. */
void server_init(struct server *s);
/* Parse the text of VERSION. */
void server_version(struct server *s, const char *text, size_t len);
/* Parse "NAME VALUE" of a STAT line of `stats settings` or `stats`. */
void server_stat(struct server *s, const char *text, size_t len);
/* Returns NULL if the server can be used for values of up to value_max_bytes.
 * Otherwise returns a text that says why it cannot, and what to do. */
const char *server_fault(const struct server *s, uint64_t value_max_bytes);

#endif

/* SPDX-License-Identifier: MIT */
/* Parses the settings and statistics of a server; see memcached_server.h. */
#include "common/memcached/memcached_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for a key and for what memcached keeps beside it. */
#define SERVER_ITEM_HEAD 1024u

/* The first release that has everything that refrain uses. The newest part is
 * ms with a length first. */
#define SERVER_MAJOR 1
#define SERVER_MINOR 6
#define SERVER_PATCH 10

void server_init(struct server *s)
{
	*s = (struct server){.item_max_bytes = UINT64_MAX};
}

void server_version(struct server *s, const char *text, size_t len)
{
	(void)snprintf(s->version, sizeof(s->version), "%.*s", (int)len, text);
	for (char *c = s->version; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* If the line has this name, parse its number. */
static void stat_number(
	const char *name, const char *value, const char *want, uint64_t *out)
{
	if (strcmp(name, want) == 0)
		*out = strtoull(value, NULL, 10);
}

void server_stat(struct server *s, const char *text, size_t len)
{
	char line[256], *value;

	if (len >= sizeof(line))
		return; /* the statistic is not needed */
	memcpy(line, text, len);
	line[len] = 0;
	value = strchr(line, ' ');
	if (!value)
		return;
	*value++ = 0;
	stat_number(line, value, "bytes", &s->used_bytes);
	stat_number(line, value, "limit_maxbytes", &s->capacity_bytes);
	stat_number(line, value, "curr_items", &s->items);
	stat_number(line, value, "item_size_max", &s->item_max_bytes);
	if (strcmp(line, "evictions") == 0 && *value >= '0' && *value <= '9') {
		s->evictions = strtoull(value, NULL, 10);
	} else if (strcmp(line, "evictions") == 0) {
		s->evicts = strcmp(value, "off") != 0;
		s->has_settings = true;
	}
	if (strcmp(line, "slab_reassign") == 0)
		s->moves = strcmp(value, "no") != 0;
	/* If `stats` contains such a line, the server has extstore. */
	if (strncmp(line, "extstore_", 9) == 0)
		s->extstore = true;
}

/* Is the version too old? A text that is not a version counts as new enough. */
static bool is_too_old(const char *version)
{
	static const unsigned long oldest[] = {
		SERVER_MAJOR, SERVER_MINOR, SERVER_PATCH};
	unsigned long part[3];
	char *end;

	for (int i = 0; i < 3; i++) {
		part[i] = strtoul(version, &end, 10);
		if (end == version || (i < 2 && *end != '.'))
			return false;
		version = end + 1;
	}
	for (int i = 0; i < 3; i++)
		if (part[i] != oldest[i])
			return part[i] < oldest[i];
	return false;
}

const char *server_fault(const struct server *s, uint64_t value_max_bytes)
{
	if (is_too_old(s->version))
		return "its memcached is too old: install 1.6.10 or later";
	if (!s->has_settings)
		return "it does not report its settings: use memcached 1.6.10 "
		       "or later, without a proxy in front of it";
	if (s->evicts)
		return "it evicts items: start memcached with -M";
	if (s->extstore)
		return "it uses extstore, which drops items: start memcached "
		       "without -o ext_path";
	if (s->moves)
		return "it moves slabs, which drops items: start memcached "
		       "with -o no_slab_reassign";
	if (s->item_max_bytes < value_max_bytes + SERVER_ITEM_HEAD)
		return "its largest item is too small: start memcached with "
		       "-I 1m or without -I";
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/* Parses the options about the hosts of a partitioned cache: a list of hosts,
 * or a file with one host per line; and the file with the secret of the
 * checksums. */
#ifndef TOOLS_PEER_OPTIONS_H
#define TOOLS_PEER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

#define PEER_LIST_HELP "HOST[:PORT],...|@FILE"

/* A list of hosts. A zeroed list has none. */
struct peer_list {
	char **host; /* allocated array of allocated strings */
	size_t n, room;
	char *secret; /* allocated */
	size_t secret_bytes;
};

/* Add the hosts of "HOST[:PORT],..." or of "@FILE". In a file, each line has
 * one host; empty lines and text after '#' are ignored. Returns 0; -EINVAL if
 * the text is invalid, or -errno if the file cannot be read, with err set. */
int peer_list_add(struct peer_list *list, const char *value, struct error *err);

/* Read the secret from a file: all bytes except a newline at the end. */
int peer_list_read_secret(
	struct peer_list *list, const char *path, struct error *err);

bool peer_list_has(const struct peer_list *list, const char *host);

/* Returns the host of the list that is this machine: its name, the first label
 * of its name, or one of its addresses. Returns NULL if no host or several
 * hosts match. */
const char *peer_list_self(const struct peer_list *list);

void peer_list_release(struct peer_list *list);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The hosts of a partitioned cache as they are typed: a list, or a file with
 * one host a line; and the secret of their checksums.
 */
#ifndef TOOLS_PEER_OPTIONS_H
#define TOOLS_PEER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

#define PEER_LIST_HELP "HOST[:PORT],...|@FILE"

/* Zero it to begin, which is a list without hosts. */
struct peer_list {
	char **host; /* allocated, as are the strings */
	size_t n, room;
	char *secret; /* allocated */
	size_t secret_bytes;
};

/*
 * Add the hosts of "HOST[:PORT],..." or "@FILE". A file has one host a line;
 * empty lines, and the rest of a line after '#', are skipped. Returns 0, or
 * -EINVAL or the -errno of the file, with a message.
 */
int peer_list_add(struct peer_list *list, const char *value, struct error *err);

/* Read the secret: all bytes of the file but a newline at its end. */
int peer_list_read_secret(
	struct peer_list *list, const char *path, struct error *err);

bool peer_list_has(const struct peer_list *list, const char *host);

/*
 * The element of the list whose host is this machine's name, the first label of
 * that name, or one of its addresses; NULL if there is none, or more than one.
 */
const char *peer_list_self(const struct peer_list *list);

void peer_list_release(struct peer_list *list);

#endif

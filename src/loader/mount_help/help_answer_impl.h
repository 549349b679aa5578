/* SPDX-License-Identifier: MIT */
/*
 * Writes and parses the lines of the control socket (doc/control-protocol.md)
 * that the loader needs. Answers are not trusted: a malformed one is -EBADMSG,
 * and nothing of it is used. Pure functions; any thread.
 */
#ifndef MOUNT_HELP_HELP_ANSWER_IMPL_H
#define MOUNT_HELP_HELP_ANSWER_IMPL_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

/* The most bytes that answer_put_name() adds. */
#define ANSWER_NAME_ROOM(bytes) (2 * (bytes) + 16)

/* Write the name as a JSON string, or as {"hex":...} if it needs escapes.
 * Returns the end of the text. */
char *answer_put_name(char *at, const char *name, size_t bytes);

/* The name of an entry; if bytes is 0, read it through the mount. */
struct answer_key {
	struct hash128 key;
	uint32_t bytes;
};

/* Returns 1 if the answer says "ok", 0 if it reports an error, -EBADMSG if the
 * line is not an answer of a mount. */
int answer_ok(const char *line, size_t bytes);

/* Get keys. Returns 1 if there are exactly `count`; otherwise as
 * answer_ok(). */
int answer_keys(
	const char *line, size_t bytes, struct answer_key *keys, size_t count);

/* Get a number that is a direct member of the answer. Returns as
 * answer_ok(). */
int answer_number(
	const char *line, size_t bytes, const char *name, uint64_t *out);

/*
 * Get several numbers at once; true and false are 1 and 0. A value that is
 * missing or not a whole number keeps its old number. Returns as answer_ok().
 */
struct answer_value {
	const char *name;
	uint64_t value;
};
int answer_values(const char *line, size_t bytes, struct answer_value *values,
	size_t count);

/* Get the tiers' directories from a status. Returns their number; after a
 * failure as answer_ok(). Paths that are longer than PATH_MAX or relative are
 * left out. */
#define ANSWER_TIERS_MAX 16
int answer_tiers(
	const char *line, size_t bytes, char dirs[ANSWER_TIERS_MAX][PATH_MAX]);

#endif

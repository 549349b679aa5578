/* SPDX-License-Identifier: MIT */
/*
 * Writes requests and parses answers of the control socket
 * (doc/control-protocol.md), as far as the loader needs them. Answers are not
 * trusted: a malformed one gives -EBADMSG, and nothing in it is used. Pure
 * functions, for any thread.
 */
#ifndef MOUNT_HELP_HELP_ANSWER_IMPL_H
#define MOUNT_HELP_HELP_ANSWER_IMPL_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

/* The maximum number of bytes that answer_put_name() writes. */
#define ANSWER_NAME_ROOM(bytes) (2 * (bytes) + 16)

/* Write a name at `at` as a JSON string, or as {"hex":...} if it needs escapes.
 * Returns the end of the written text. */
char *answer_put_name(char *at, const char *name, size_t bytes);

/* The key and size of an entry. If `bytes` is 0, there is no entry: read the
 * file through the mount. */
struct answer_key {
	struct hash128 key;
	uint32_t bytes;
};

/* Returns 1 if the answer says "ok", 0 if it reports an error, or -EBADMSG if
 * the line is not an answer of a mount. */
int answer_ok(const char *line, size_t bytes);

/* Get the keys in an answer. Returns 1 if there are exactly `count` keys,
 * otherwise like answer_ok(). */
int answer_keys(
	const char *line, size_t bytes, struct answer_key *keys, size_t count);

/* Get a number that is a direct member of the answer. Returns like
 * answer_ok(). */
int answer_number(
	const char *line, size_t bytes, const char *name, uint64_t *out);

/*
 * Get several numbers at once; true and false are 1 and 0. If a member is
 * missing or not a whole number, the old value stays. Returns like answer_ok().
 */
struct answer_value {
	const char *name;
	uint64_t value;
};
int answer_values(const char *line, size_t bytes, struct answer_value *values,
	size_t count);

/* Get the directories of the tiers from the answer to a status. Returns their
 * number, or a failure like answer_ok(). Paths that are relative or longer than
 * PATH_MAX are left out. */
#define ANSWER_TIERS_MAX 16
int answer_tiers(
	const char *line, size_t bytes, char dirs[ANSWER_TIERS_MAX][PATH_MAX]);

#endif

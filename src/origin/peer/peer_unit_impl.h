/* SPDX-License-Identifier: MIT */
/* Writes and checks the keys and values in the engine; doc/formats.md describes
 * them. Pure functions. Private to this room. */
#ifndef PEER_UNIT_IMPL_H
#define PEER_UNIT_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

#define UNIT_BYTES ((size_t)256 << 10)
/* Length of the bytes before a unit's content: magic, length, writer, checksum.
 */
#define UNIT_HEAD_BYTES 24u
#define UNIT_VALUE_MAX (UNIT_BYTES + UNIT_HEAD_BYTES)

/* If nobody reads a unit for this time (a week), the server deletes it. */
#define UNIT_TTL_S 604800

/* Size of a buffer for any key, with its NUL; memcached allows 250 bytes. */
#define UNIT_KEY_MAX 64u

/* One unit of an item. */
struct unit {
	struct hash128 item;
	uint32_t n;	 /* index of the unit in its item */
	uint32_t bytes;	 /* length of the content */
	uint64_t writer; /* the id of the mount that has pushed it */
};

/* Write the key of a unit, "rf2:ITEM:N". Returns its length. */
size_t unit_key(char key[UNIT_KEY_MAX], struct hash128 item, uint32_t n);
/* Write the key of a lease, "rf2:ITEM:lease", which decides which host fetches
 * the item. */
size_t unit_lease_key(char key[UNIT_KEY_MAX], struct hash128 item);
/* Write the key of a host's digest of its manifest, "rf2:DATASET:manifest". */
size_t unit_manifest_key(char key[UNIT_KEY_MAX], struct hash128 dataset);
/* Write the key of the hash of a host's secret, "rf2:DATASET:secret". */
size_t unit_secret_key(char key[UNIT_KEY_MAX], struct hash128 dataset);

/* Returns the seed of all checksums, computed from dataset and secret. */
uint64_t unit_seed(
	struct hash128 dataset, const void *secret, size_t secret_bytes);

/* Write the bytes that precede the content of a unit. */
void unit_seal(uint8_t head[UNIT_HEAD_BYTES], uint64_t seed,
	const struct unit *u, const void *content);

/* Returns the value for unit_secret_key(). It does not reveal the secret. */
uint64_t unit_secret_mark(uint64_t seed);

/* Is this the complete and correct value of the unit? If so, sets u->writer. */
bool unit_is_right(
	const void *value, size_t value_bytes, uint64_t seed, struct unit *u);

#endif

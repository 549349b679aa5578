/* SPDX-License-Identifier: MIT */
/*
 * Keys and values in the engine; doc/formats.md describes them. Pure
 * functions. Private to this room.
 */
#ifndef PEER_UNIT_IMPL_H
#define PEER_UNIT_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

#define UNIT_BYTES ((size_t)256 << 10)
/* Before the content of a unit: magic, length, writer, checksum. */
#define UNIT_HEAD_BYTES 24u
#define UNIT_VALUE_MAX (UNIT_BYTES + UNIT_HEAD_BYTES)

/* The server deletes a unit that nobody has read for so long. */
#define UNIT_TTL_S 604800

/* Room for any key, NUL included; memcached allows 250. */
#define UNIT_KEY_MAX 64u

/* One unit of an item. */
struct unit {
	struct hash128 item;
	uint32_t n;	 /* the number of the unit in its item */
	uint32_t bytes;	 /* of content */
	uint64_t writer; /* the id of the mount that pushed it */
};

/* "rf2:ITEM:N", the value of a unit; returns its length. */
size_t unit_key(char key[UNIT_KEY_MAX], struct hash128 item, uint32_t n);
/* "rf2:ITEM:lease": decides which host fetches the item. */
size_t unit_lease_key(char key[UNIT_KEY_MAX], struct hash128 item);
/* "rf2:DATASET:manifest": the digest of a host's manifest, in its server. */
size_t unit_manifest_key(char key[UNIT_KEY_MAX], struct hash128 dataset);
/* "rf2:DATASET:secret": a hash of a host's secret, in its server. */
size_t unit_secret_key(char key[UNIT_KEY_MAX], struct hash128 dataset);

/* The seed of all checksums, from dataset and secret. */
uint64_t unit_seed(
	struct hash128 dataset, const void *secret, size_t secret_bytes);

/* Write the bytes that precede the content. */
void unit_seal(uint8_t head[UNIT_HEAD_BYTES], uint64_t seed,
	const struct unit *u, const void *content);

/* The value of unit_secret_key(); says nothing of the secret itself. */
uint64_t unit_secret_mark(uint64_t seed);

/* Is this the complete and correct value of the unit? Then sets u->writer. */
bool unit_is_right(
	const void *value, size_t value_bytes, uint64_t seed, struct unit *u);

#endif

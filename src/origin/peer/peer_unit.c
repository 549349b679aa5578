/* SPDX-License-Identifier: MIT */
/* Writes and checks the keys and values in the engine. */
#include "origin/peer/peer_unit_impl.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

static const char unit_magic[4] = {'R', 'F', 'U', '2'};

static size_t unit_put_key(
	char key[UNIT_KEY_MAX], struct hash128 h, const char *what)
{
	char digits[33];

	*hash128_put(digits, h) = 0;
	return (size_t)snprintf(key, UNIT_KEY_MAX, "rf2:%s:%s", digits, what);
}

size_t unit_key(char key[UNIT_KEY_MAX], struct hash128 item, uint32_t n)
{
	char what[16];

	(void)snprintf(what, sizeof(what), "%u", n);
	return unit_put_key(key, item, what);
}

size_t unit_lease_key(char key[UNIT_KEY_MAX], struct hash128 item)
{
	return unit_put_key(key, item, "lease");
}

size_t unit_manifest_key(char key[UNIT_KEY_MAX], struct hash128 dataset)
{
	return unit_put_key(key, dataset, "manifest");
}

size_t unit_secret_key(char key[UNIT_KEY_MAX], struct hash128 dataset)
{
	return unit_put_key(key, dataset, "secret");
}

uint64_t unit_secret_mark(uint64_t seed)
{
	static const char what[] = "secret";

	return hash64(what, sizeof(what) - 1, seed);
}

uint64_t unit_seed(
	struct hash128 dataset, const void *secret, size_t secret_bytes)
{
	return hash64(secret, secret_bytes, dataset.lo ^ dataset.hi);
}

static uint64_t unit_sum(uint64_t seed, const struct unit *u, const void *data)
{
	const uint64_t name[] = {
		htole64(u->item.hi),
		htole64(u->item.lo),
		htole64((uint64_t)u->n << 32 | u->bytes),
		htole64(u->writer),
	};

	return hash64(data, u->bytes, hash64(name, sizeof(name), seed));
}

void unit_seal(uint8_t head[UNIT_HEAD_BYTES], uint64_t seed,
	const struct unit *u, const void *content)
{
	uint64_t sum = htole64(unit_sum(seed, u, content));
	uint64_t writer = htole64(u->writer);
	uint32_t bytes = htole32(u->bytes);

	memcpy(head, unit_magic, 4);
	memcpy(head + 4, &bytes, 4);
	memcpy(head + 8, &writer, 8);
	memcpy(head + 16, &sum, 8);
}

bool unit_is_right(
	const void *value, size_t value_bytes, uint64_t seed, struct unit *u)
{
	const uint8_t *head = value;
	uint32_t bytes;
	uint64_t sum, writer;

	if (value_bytes != (size_t)UNIT_HEAD_BYTES + u->bytes)
		return false;
	memcpy(&bytes, head + 4, 4);
	memcpy(&writer, head + 8, 8);
	memcpy(&sum, head + 16, 8);
	u->writer = le64toh(writer);
	return memcmp(head, unit_magic, 4) == 0 && le32toh(bytes) == u->bytes &&
		le64toh(sum) == unit_sum(seed, u, head + UNIT_HEAD_BYTES);
}

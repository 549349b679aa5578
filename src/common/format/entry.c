/* SPDX-License-Identifier: MIT */
/* The format of an entry: its name and its trailer. No state; any thread. */
#include "common/format/entry.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define ENTRY_VERSION 1
#define ENTRY_KEY_DIGITS 32

static const char entry_magic[8] = {'r', 'f', 'r', 'e', 'n', 't', 'r', 'y'};

/* The footer on disk: little endian, unaligned. */
struct footer {
	char magic[8];
	uint32_t version;
	uint32_t block_bytes;
	uint64_t item_bytes;
	uint64_t key_hi, key_lo;
	uint64_t checksum;
};

_Static_assert(
	sizeof(struct footer) == ENTRY_FOOTER_BYTES, "the footer has no holes");

static uint64_t entry_seed(struct hash128 key)
{
	return key.hi ^ key.lo;
}

static void put_decimal(char *at, uint64_t value)
{
	size_t digits = 1;

	for (uint64_t v = value; v >= 10; v /= 10)
		digits++;
	at[digits] = '\0';
	while (digits-- > 0) {
		at[digits] = (char)('0' + value % 10);
		value /= 10;
	}
}

/* Write the path of an entry. This does not use printf(), because a loader
 * calls it for each image, and printf() would take a hundredth of the time of a
 * small image. */
const char *entry_path(
	char buf[ENTRY_PATH_MAX], struct hash128 key, uint64_t item_bytes)
{
	char *at = hash128_put(buf + 3, key);

	memcpy(buf, buf + 3, 2);
	buf[2] = '/';
	*at++ = '-';
	put_decimal(at, item_bytes);
	return buf;
}

static int entry_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool parse_hex(const char *p, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < ENTRY_KEY_DIGITS / 2; i++) {
		int d = entry_hex_digit(p[i]);

		if (d < 0)
			return false;
		*value = *value << 4 | (uint64_t)d;
	}
	return true;
}

static bool entry_parse_size(const char *p, uint64_t *value)
{
	*value = 0;
	if (*p == '0' || !*p)
		return false;
	for (; *p; p++) {
		if (*p < '0' || *p > '9')
			return false;
		*value = *value * 10 + (uint64_t)(*p - '0');
		if (*value > ENTRY_ITEM_MAX_BYTES)
			return false;
	}
	return true;
}

bool entry_parse_name(const char *name, unsigned int sub, struct hash128 *key,
	uint64_t *item_bytes)
{
	if (strnlen(name, ENTRY_KEY_DIGITS + 1) <= ENTRY_KEY_DIGITS)
		return false;
	return parse_hex(name, &key->hi) &&
		parse_hex(name + ENTRY_KEY_DIGITS / 2, &key->lo) &&
		name[ENTRY_KEY_DIGITS] == '-' &&
		entry_parse_size(name + ENTRY_KEY_DIGITS + 1, item_bytes) &&
		key->hi >> 56 == sub;
}

void entry_make_trailer(void *trailer, struct hash128 key, const void *data,
	uint64_t item_bytes)
{
	unsigned char *t = trailer;
	const unsigned char *p = data;
	size_t table = entry_trailer_bytes(item_bytes) - ENTRY_FOOTER_BYTES;
	struct footer f = {
		.version = htole32(ENTRY_VERSION),
		.block_bytes = htole32((uint32_t)ENTRY_BLOCK_BYTES),
		.item_bytes = htole64(item_bytes),
		.key_hi = htole64(key.hi),
		.key_lo = htole64(key.lo),
	};

	memcpy(f.magic, entry_magic, sizeof(f.magic));
	for (uint64_t off = 0, i = 0; off < item_bytes; i++) {
		uint64_t left = item_bytes - off;
		size_t n = left < ENTRY_BLOCK_BYTES ? (size_t)left
						    : ENTRY_BLOCK_BYTES;
		uint64_t h = htole64(hash64(p + off, n, entry_seed(key)));

		memcpy(t + i * 8, &h, sizeof(h));
		off += n;
	}
	memcpy(t + table, &f, sizeof(f));
	f.checksum = htole64(hash64(
		t, table + offsetof(struct footer, checksum), entry_seed(key)));
	memcpy(t + table, &f, sizeof(f));
}

const char *entry_check_trailer(
	const void *trailer, struct hash128 key, uint64_t item_bytes, bool full)
{
	size_t table = entry_trailer_bytes(item_bytes) - ENTRY_FOOTER_BYTES;
	struct footer f;

	memcpy(&f, (const unsigned char *)trailer + table, sizeof(f));
	if (memcmp(f.magic, entry_magic, sizeof(f.magic)) != 0)
		return "no footer where it belongs";
	if (le32toh(f.version) != ENTRY_VERSION ||
		le32toh(f.block_bytes) != ENTRY_BLOCK_BYTES)
		return "unknown version";
	if (le64toh(f.item_bytes) != item_bytes)
		return "wrong length in the footer";
	if (le64toh(f.key_hi) != key.hi || le64toh(f.key_lo) != key.lo)
		return "wrong key in the footer";
	if (full &&
		le64toh(f.checksum) !=
			hash64(trailer,
				table + offsetof(struct footer, checksum),
				entry_seed(key)))
		return "wrong checksum of the trailer";
	return NULL;
}

bool entry_check_blocks(const void *trailer, struct hash128 key,
	const void *data, size_t len, uint64_t first)
{
	const unsigned char *t = (const unsigned char *)trailer + first * 8;
	const unsigned char *p = data;

	while (len) {
		size_t n = len < ENTRY_BLOCK_BYTES ? len : ENTRY_BLOCK_BYTES;
		uint64_t want;

		memcpy(&want, t, sizeof(want));
		if (hash64(p, n, entry_seed(key)) != le64toh(want))
			return false;
		t += 8;
		p += n;
		len -= n;
	}
	return true;
}

int entry_check(const void *file, size_t file_bytes, struct hash128 key,
	uint64_t item_bytes)
{
	const unsigned char *trailer;

	if (!item_bytes || item_bytes > ENTRY_ITEM_MAX_BYTES ||
		file_bytes != entry_bytes(item_bytes))
		return -EBADMSG;
	trailer = (const unsigned char *)file + item_bytes;
	if (entry_check_trailer(trailer, key, item_bytes, true))
		return -EBADMSG;
	return entry_check_blocks(trailer, key, file, (size_t)item_bytes, 0)
		? 0
		: -EBADMSG;
}

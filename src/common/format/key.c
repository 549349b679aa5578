/* SPDX-License-Identifier: MIT */
/* Computes the keys of items; see doc/formats.md. Pure functions. */
#include "common/format/key.h"

#include <endian.h>
#include <string.h>

static void put_u64(unsigned char *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

struct hash128 key_digest(const char *text)
{
	return hash128(text, strlen(text));
}

/* key = XXH3-128(digest(dataset) digest(path) size mtime offset length [tag]).
 * The fields have fixed widths, so different inputs never give the same bytes.
 * A tag of 0 is left out, so files without tags keep the keys that they had
 * before there were tags. */
struct hash128 key_item_of(struct hash128 dataset, struct hash128 path,
	struct file_version version, uint64_t offset_bytes, uint64_t size_bytes)
{
	unsigned char text[9 * 8];
	size_t n = 8 * 8;

	put_u64(text, dataset.hi);
	put_u64(text + 8, dataset.lo);
	put_u64(text + 16, path.hi);
	put_u64(text + 24, path.lo);
	put_u64(text + 32, version.size_bytes);
	put_u64(text + 40, (uint64_t)version.mtime_ns);
	put_u64(text + 48, offset_bytes);
	put_u64(text + 56, size_bytes);
	if (version.tag) {
		put_u64(text + n, version.tag);
		n += 8;
	}
	return hash128(text, n);
}

uint64_t key_inode(struct hash128 dataset, struct hash128 path,
	struct file_version version)
{
	struct hash128 k =
		key_item_of(dataset, path, version, 0, version.size_bytes);

	return k.lo > 1 ? k.lo : k.lo + 2;
}

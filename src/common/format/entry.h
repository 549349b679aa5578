/* SPDX-License-Identifier: MIT */
/* The format of an entry: its name and its trailer (doc/formats.md). The mount
 * writes and reads entries; a loader opens entries of a mount's tiers without
 * the mount. Pure functions of bytes, callable from any thread. These functions
 * check all bytes that come from disk. */
#ifndef FORMAT_ENTRY_H
#define FORMAT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

/* Each checksum covers a block of this many content bytes. */
#define ENTRY_BLOCK_BYTES ((size_t)64 << 10)

/* Maximum length of an item. The trailer of such an item has 128 KiB. */
#define ENTRY_ITEM_MAX_BYTES ((uint64_t)1 << 30)

#define ENTRY_FOOTER_BYTES ((size_t)48)
#define ENTRY_TRAILER_MAX_BYTES                                                \
	(ENTRY_ITEM_MAX_BYTES / ENTRY_BLOCK_BYTES * 8 + ENTRY_FOOTER_BYTES)

/* Size of a buffer for a path: "ab/", 32 digits, '-', up to 10 digits of size,
 * and a NUL; rounded up. */
#define ENTRY_PATH_MAX 64

static inline uint64_t entry_blocks(uint64_t item_bytes)
{
	return (item_bytes + ENTRY_BLOCK_BYTES - 1) / ENTRY_BLOCK_BYTES;
}

static inline size_t entry_trailer_bytes(uint64_t item_bytes)
{
	return (size_t)entry_blocks(item_bytes) * 8 + ENTRY_FOOTER_BYTES;
}

/* Returns the size of the entry's file. */
static inline size_t entry_bytes(uint64_t item_bytes)
{
	return (size_t)item_bytes + entry_trailer_bytes(item_bytes);
}

/* Write the path "ab/NAME", relative to the tier, to buf. Returns buf. */
const char *entry_path(
	char buf[ENTRY_PATH_MAX], struct hash128 key, uint64_t item_bytes);

/* Parse a name. Returns false if it is invalid or belongs to another
 * sub-directory than `sub`. */
bool entry_parse_name(const char *name, unsigned int sub, struct hash128 *key,
	uint64_t *item_bytes);

/* Compute the trailer of this content. It has entry_trailer_bytes() bytes. */
void entry_make_trailer(void *trailer, struct hash128 key, const void *data,
	uint64_t item_bytes);

/* Check that the trailer belongs to this entry. Returns NULL if it does,
 * otherwise a text that says what is wrong. Without `full`, checks only magic,
 * version, length and key. */
const char *entry_check_trailer(const void *trailer, struct hash128 key,
	uint64_t item_bytes, bool full);

/* Verify whole blocks. `data` has `len` bytes of the content, from the start of
 * block `first` to the end of a block or of the content. Check the trailer
 * before. */
bool entry_check_blocks(const void *trailer, struct hash128 key,
	const void *data, size_t len, uint64_t first);

/* Verify an entry, given all bytes of its file. Returns 0 or -EBADMSG. */
int entry_check(const void *file, size_t file_bytes, struct hash128 key,
	uint64_t item_bytes);

#endif

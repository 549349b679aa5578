/* SPDX-License-Identifier: MIT */
/*
 * The key of an item: 128 bits that stand for the dataset, the path, the
 * version, and the range of the item in the file. A changed file has other
 * keys. doc/formats.md describes how they are computed, which never changes:
 * the names of entries on disk contain keys, and the loader library computes
 * keys to open entries without the mount.
 */
#ifndef FORMAT_KEY_H
#define FORMAT_KEY_H

#include <stdint.h>

#include "common/base/attr.h"
#include "common/base/hash.h"

/* Returns the digest of a dataset's source or of a path, for keys. */
struct hash128 key_digest(const char *text);

/* Returns the key of an item. `dataset` is the digest of the source as the tier
 * records it. `path` is the digest of the file's path relative to the source,
 * without a slash at its beginning or end. The item is at offset_bytes of its
 * file and has size_bytes. */
struct hash128 key_item_of(struct hash128 dataset, struct hash128 path,
	struct file_version version, uint64_t offset_bytes,
	uint64_t size_bytes);

/* Returns the inode number of one version of a file: 64 bits of the key of the
 * whole file, never 0 or 1. For a directory the version consists of zeros, so
 * its number never changes. */
uint64_t key_inode(struct hash128 dataset, struct hash128 path,
	struct file_version version);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The key of an item: 128 bits that stand for the dataset, the path, the
 * version, and the place of the item in the file. A changed file has other
 * keys. doc/formats.md gives the derivation, which never changes: entries on
 * disk carry it, and the loader library computes it to open hits directly.
 */
#ifndef FORMAT_KEY_H
#define FORMAT_KEY_H

#include <stdint.h>

#include "common/base/attr.h"
#include "common/base/hash.h"

/* The digest of a dataset's source or of a path, as keys contain it. */
struct hash128 key_digest(const char *text);

/*
 * The key of an item. `dataset` is the digest of the source as the tier records
 * it, `path` that of the file's path relative to it, with no leading or
 * trailing slash. offset_bytes and size_bytes place the item in its file.
 */
struct hash128 key_item_of(struct hash128 dataset, struct hash128 path,
	struct file_version version, uint64_t offset_bytes,
	uint64_t size_bytes);

/* The inode number of one version of a file: 64 bits of the key of the whole
 * file, never 0 or 1. A directory passes a version of zeros, so its number
 * never changes. */
uint64_t key_inode(struct hash128 dataset, struct hash128 path,
	struct file_version version);

#endif

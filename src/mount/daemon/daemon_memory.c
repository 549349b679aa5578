/* SPDX-License-Identifier: MIT */
/*
 * Fits the memory of a mount into its memory control group, because the kernel
 * kills a daemon whose group is full. Any thread may call the functions.
 */
#include "mount/daemon/mount_impl.h"

#include <stdio.h>

#include "common/base/cgroup.h"
#include "common/base/names_memory.h"
#include "common/base/size.h"

/* Memory of a daemon that holds no data, including kernel pages that it always
 * needs. Measured: 14 MiB; see doc/operations.md. */
#define BASE_BYTES ((uint64_t)24 << 20)
/* Memory that an entry of a tier in memory needs for the kernel's inode and
 * name. */
#define MEMORY_ENTRY_BYTES 1024u
/* The default of --limit does not become smaller than this, because larger
 * entries read a disk with fewer requests. */
#define LIMIT_LEAST_BYTES ((uint64_t)1 << 20)
#define SENTENCE_MAX 512

uint64_t memory_limit(void)
{
	return cgroup_memory_limit("");
}

uint64_t memory_gather_bytes(uint64_t staging_bytes)
{
	/* At least one request must fit. */
	return staging_bytes / 4 > CACHE_READ_MAX_BYTES ? staging_bytes / 4
							: CACHE_READ_MAX_BYTES;
}

uint64_t memory_inflight_bytes(uint64_t staging_bytes)
{
	return memory_limit() < CGROUP_NO_LIMIT ? staging_bytes / 4 : 0;
}

/* Returns the capacity of the tiers in memory. *entries gets the number of
 * their entries. */
static uint64_t tiers_in_memory(struct store *store, uint64_t *entries)
{
	uint64_t bytes = 0;

	*entries = 0;
	for (size_t i = 0; i < store_tiers(store); i++) {
		struct tier_status s;

		store_tier_status(store, i, &s);
		bytes += s.in_memory ? s.capacity_bytes : 0;
		*entries += s.in_memory ? s.entries : 0;
	}
	return bytes;
}

/* Returns the memory that a mount needs for its data in transit. */
static uint64_t memory_of_staging(uint64_t staging_bytes)
{
	return BASE_BYTES + staging_bytes + memory_gather_bytes(staging_bytes) +
		staging_bytes / 4;
}

/* The default is half of the memory that is left, because gathered reads and
 * requests in flight may need another quarter of staging each. */
uint64_t memory_default_staging(struct store *store, uint64_t item_bytes)
{
	uint64_t limit = memory_limit(), entries;
	uint64_t taken = BASE_BYTES + tiers_in_memory(store, &entries);
	uint64_t least = 4 * item_bytes, bytes = MOUNT_STAGING_BYTES;

	if (limit < CGROUP_NO_LIMIT)
		bytes = limit > taken ? (limit - taken) / 2 : 0;
	bytes -= bytes % ((uint64_t)1 << 20);
	if (bytes > MOUNT_STAGING_BYTES)
		bytes = MOUNT_STAGING_BYTES;
	return bytes > least ? bytes : least;
}

/* Returns the memory for the default of staging and its buffers. */
static uint64_t memory_by_default(struct store *store, uint64_t item_bytes)
{
	return memory_of_staging(memory_default_staging(store, item_bytes));
}

uint64_t memory_default_limit(struct store *store, uint64_t chunk_bytes)
{
	uint64_t bytes = MOUNT_LIMIT_BYTES, entries;
	uint64_t tiers = tiers_in_memory(store, &entries);
	uint64_t least = chunk_bytes > LIMIT_LEAST_BYTES ? chunk_bytes
							 : LIMIT_LEAST_BYTES;

	while (bytes / 2 >= least &&
		tiers + memory_by_default(store, bytes) > memory_limit())
		bytes /= 2;
	return bytes;
}

bool limits_of_memory(struct store *store, uint64_t staging_bytes,
	uint64_t files, limit_fn *fn, void *arg)
{
	uint64_t limit = memory_limit(), entries;
	uint64_t tiers = tiers_in_memory(store, &entries);
	uint64_t names =
		files * NAME_MEMORY_BYTES + entries * MEMORY_ENTRY_BYTES;
	uint64_t buffers = memory_of_staging(staging_bytes) - staging_bytes;
	uint64_t needed = tiers + staging_bytes + names + buffers;
	char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX], c[SIZE_TEXT_MAX];
	char d[SIZE_TEXT_MAX], e[SIZE_TEXT_MAX], f[SIZE_TEXT_MAX];
	char sentence[SENTENCE_MAX];

	if (needed <= limit)
		return false;
	(void)snprintf(sentence, sizeof(sentence),
		"the memory control group allows %s, but the mount may need "
		"%s (tiers in memory %s, --staging %s, buffers %s, names %s), "
		"and the kernel would then kill the daemon; raise the limit, "
		"or make --staging and --limit or the tiers in memory smaller",
		size_format(limit, a), size_format(needed, b),
		size_format(tiers, c), size_format(staging_bytes, d),
		size_format(buffers, e), size_format(names, f));
	fn(arg, sentence);
	return true;
}

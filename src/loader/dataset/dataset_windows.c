/* SPDX-License-Identifier: MIT */
/* Answers where a window of tokens is. The dataset is constant, so any thread
 * may call these functions without a lock. */
#include "loader/dataset/dataset_table_impl.h"

#include "common/base/hash.h"
#include "common/schedule/permute.h"

#define SHIFT_PURPOSE 0x7368696674 /* keeps these seeds apart from others */

static const struct ds_windows *windows_of(
	const struct dataset *ds, uint32_t shard)
{
	return (const struct ds_windows *)array_data(
		       &ds->section[SECTION_EXAMPLES]) +
		shard;
}

void ds_window_example(const struct dataset *ds, uint64_t index, uint32_t shard,
	struct example *out)
{
	const struct token_windows *how = &ds->windows;
	const struct ds_windows *w = windows_of(ds, shard);
	const struct ds_shard *s = (const struct ds_shard *)array_data(
					   &ds->section[SECTION_SHARDS]) +
		shard;
	const char *texts = array_data(&ds->section[SECTION_TEXTS]);

	*out = (struct example){
		.dir = ds->dir,
		.file = texts + s->file,
		.name = texts + s->file,
		.shard = shard,
		.offset = w->at +
			(index - s->first) * how->length * w->value_bytes,
		.bytes =
			((uint64_t)how->length + how->overlap) * w->value_bytes,
		.label = -1,
	};
}

uint64_t ds_shift_bytes(
	const struct dataset *ds, uint32_t shard, uint64_t seed, uint64_t pass)
{
	const struct ds_windows *w = windows_of(ds, shard);
	uint64_t words[] = {SHIFT_PURPOSE, shard};
	struct permute p;

	/* All shifts come before one comes again */
	permute_init(&p, w->shifts, hash64(words, sizeof(words), seed));
	return permute_at(&p, pass % w->shifts) * w->value_bytes;
}

uint64_t ds_print_windows(const struct dataset *ds, uint64_t seed)
{
	const struct array *rows = &ds->section[SECTION_EXAMPLES];
	const struct token_windows *how = &ds->windows;
	const struct ds_windows *w = array_data(rows);

	seed = hash64(
		(uint64_t[4]){ds->count, how->length, how->overlap, how->fixed},
		32, seed);
	for (size_t i = 0; i < array_count(rows, sizeof(*w)); i++)
		seed = hash64(
			(uint64_t[3]){w[i].at, w[i].tokens, w[i].value_bytes},
			24, seed);
	return seed;
}

/* SPDX-License-Identifier: MIT */
/*
 * Cuts files of tokens into windows. A .bin has values only, a .npy says of
 * which type its values are. The windows of a file are `length` tokens apart,
 * and each has `overlap` tokens more. They begin at a shift, which is another
 * one in each pass, so that texts are not cut at the same tokens for ever. As
 * many windows are examples as fit for every shift; a file too short for that
 * has one. The table of examples has one row for each file. Called by the
 * driver of a look; the files are examined by its workers.
 */
#include "loader/dataset/dataset_look_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "loader/dataset/npy.h"

static struct ds_windows *windows_at(struct look *l, uint64_t shard)
{
	return (struct ds_windows *)array_data(
		       &l->ds->section[SECTION_EXAMPLES]) +
		shard;
}

static int refuse_tokens(struct look *l, uint64_t shard, const char *why)
{
	return look_fail(l, -EBADMSG, "'%s' of '%s': %s",
		dataset_shard_file(l->ds, (uint32_t)shard), l->path, why);
}

/* -- Files ----------------------------------------------------------------- */

static int examine_npy(struct look *l, uint64_t shard)
{
	struct ds_windows *w = windows_at(l, shard);
	struct error err;
	struct npy npy;

	if (look_npy(l, shard, &npy, &err) < 0)
		return refuse_tokens(l, shard, err.msg);
	if (npy.ndim != 1)
		return refuse_tokens(
			l, shard, "an array of tokens must have one dimension");
	if (npy.kind == 'f' || npy.kind == 'b' ||
		(npy.kind == 'i' && npy.value_bytes < 4))
		return refuse_tokens(
			l, shard, "tokens must be u1, u2, u4, u8, i4 or i8");
	w->at = npy.at;
	w->value_bytes = npy.value_bytes;
	w->tokens = npy.shape[0];
	return 0;
}

static bool is_npy(const char *file)
{
	size_t n = strlen(file);

	return n >= 4 && strcmp(file + n - 4, ".npy") == 0;
}

static int examine(struct look *l, void *arg, uint64_t shard)
{
	struct ds_windows *w = windows_at(l, shard);
	uint64_t bytes = ds_shards(l->ds)[shard].bytes;

	(void)arg;
	if (is_npy(dataset_shard_file(l->ds, (uint32_t)shard)))
		return examine_npy(l, shard);
	w->value_bytes = UINT32_C(1) << l->windows.from;
	w->tokens = bytes / w->value_bytes;
	return bytes % w->value_bytes
		? refuse_tokens(l, shard,
			  "its size is not a multiple of a token's: is the "
			  "option 'from' right?")
		: 0;
}

/* -- Windows --------------------------------------------------------------- */

/* Set the number of windows of a file, and of shifts. Every window must be in
 * the file at every shift. */
static void cut_tokens(
	const struct token_windows *how, struct ds_windows *w, uint64_t *count)
{
	uint64_t length = how->length, overlap = how->overlap, left;

	*count = 0;
	w->shifts = 1;
	if (w->tokens < length + overlap)
		return;
	*count = (w->tokens - overlap) / length;
	if (!how->fixed && *count > 1 &&
		w->tokens - overlap - *count * length < length - 1)
		--*count;
	if (how->fixed)
		return;
	left = w->tokens - overlap - *count * length;
	w->shifts = (uint32_t)(left < length ? left + 1 : length);
}

static int cut_all(struct look *l)
{
	struct dataset *ds = l->ds;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < dataset_shards(ds); i++) {
		struct ds_windows *w = windows_at(l, i);
		uint64_t count;

		cut_tokens(&l->windows, w, &count);
		ds_shards(ds)[i].first = ds->count;
		ds->count += count;
		ds->tail_tokens += w->tokens -
			(count ? count * l->windows.length + l->windows.overlap
			       : 0);
		if (!count)
			rc = look_skip(l, 1, "", dataset_shard_file(ds, i));
	}
	return rc;
}

int look_tokens(struct look *l)
{
	static const char *const suffixes[] = {".bin", ".npy", NULL};
	struct dataset *ds = l->ds;
	int rc = 0;

	ds_begin(ds, EXAMPLES_WINDOWS);
	ds->windows = l->windows;
	if (dataset_shards(ds) == 0)
		rc = look_list_shards(l, suffixes);
	if (rc == 0)
		rc = look_stat_shards(l);
	for (uint32_t i = 0; rc == 0 && i < dataset_shards(ds); i++) {
		struct ds_windows *w =
			array_grow(&ds->section[SECTION_EXAMPLES], sizeof(*w));

		rc = w ? 0 : -ENOMEM;
		if (w)
			*w = (struct ds_windows){.at = 0};
	}
	if (rc == 0)
		rc = look_each(l, dataset_shards(ds), examine, NULL);
	return rc < 0 ? rc : cut_all(l);
}

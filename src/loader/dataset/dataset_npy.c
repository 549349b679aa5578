/* SPDX-License-Identifier: MIT */
/* Reads the header of an array, and makes a dataset of volumes, of which each
 * is an example. The table of examples has one row for each file. Called by the
 * driver of a look; the files are examined by its workers. */
#include "loader/dataset/dataset_look_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "loader/dataset/npy.h"

/* Read the header into `data`. Returns its size, or -errno. */
static ssize_t read_array_header(int fd, char *data)
{
	ssize_t n = pread(fd, data, NPY_START_BYTES, 0);
	size_t bytes = n < 0 ? 0 : npy_header_bytes(data, (size_t)n);

	return bytes ? pread(fd, data, bytes, 0) : n;
}

int look_npy(struct look *l, uint64_t shard, struct npy *out, struct error *err)
{
	CLEANUP_FREE char *data = malloc(NPY_HEADER_MAX);
	CLEANUP_FD int fd =
		openat(l->ds->dir, dataset_shard_file(l->ds, (uint32_t)shard),
			O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 || !data ? -1 : read_array_header(fd, data);
	uint64_t file_bytes = ds_shards(l->ds)[shard].bytes;
	int rc;

	if (n < 0)
		return error_set(err, -errno, "%m");
	look_answered(l);
	rc = npy_parse(out, data, (size_t)n, err);
	if (rc < 0)
		return rc;
	if (file_bytes < out->at || file_bytes - out->at < out->bytes)
		return error_set(
			err, -EBADMSG, "the file ends within its array");
	return 0;
}

/* -- Volumes --------------------------------------------------------------- */

static int check_volume(const struct array_crops *how, const struct npy *npy,
	struct ds_volume *out, struct error *err)
{
	uint32_t first = how->channels ? 1 : 0;

	if (npy->ndim != 3 + first)
		return error_set(err, -EBADMSG,
			"it has %u dimensions instead of %u; an option "
			"'channels' stands for one before the three",
			npy->ndim, 3 + first);
	if (first && npy->shape[0] != how->channels)
		return error_set(err, -EBADMSG,
			"it has %llu channels instead of %u",
			(unsigned long long)npy->shape[0], how->channels);
	if ((npy->kind == 'b' ? 'u' : npy->kind) != how->kind ||
		npy->value_bytes != how->value_bytes)
		return error_set(err, -EBADMSG,
			"its values are of type %c%u instead of %c%u: see the "
			"option 'type'",
			npy->kind, npy->value_bytes, how->kind,
			how->value_bytes);
	out->at = npy->at;
	for (unsigned i = 0; i < 3; i++) {
		out->shape[i] = npy->shape[first + i];
		if (out->shape[i] < how->crop[i] || out->shape[i] > UINT32_MAX)
			return error_set(err, -EBADMSG,
				"the crop does not fit into its shape");
	}
	return 0;
}

static int examine_volume(struct look *l, void *arg, uint64_t shard)
{
	struct ds_volume *row = (struct ds_volume *)array_data(
					&l->ds->section[SECTION_EXAMPLES]) +
		shard;
	struct error err;
	struct npy npy;
	int rc = look_npy(l, shard, &npy, &err);

	(void)arg;
	if (rc == 0)
		rc = check_volume(&l->arrays, &npy, row, &err);
	return rc < 0 ? look_fail(l, rc, "'%s' of '%s': %s",
				dataset_shard_file(l->ds, (uint32_t)shard),
				l->path, err.msg)
		      : 0;
}

int look_arrays(struct look *l)
{
	static const char *const suffixes[] = {".npy", NULL};
	struct dataset *ds = l->ds;
	int rc = 0;

	ds_begin(ds, EXAMPLES_VOLUMES);
	if (dataset_shards(ds) == 0)
		rc = look_list_shards(l, suffixes);
	if (rc == 0)
		rc = look_stat_shards(l);
	for (uint32_t i = 0; rc == 0 && i < dataset_shards(ds); i++) {
		struct ds_volume *row = array_grow(
			&ds->section[SECTION_EXAMPLES], sizeof(*row));

		rc = row ? 0 : -ENOMEM;
		if (row)
			*row = (struct ds_volume){.at = 0};
		ds_shards(ds)[i].first = i;
	}
	ds->count = dataset_shards(ds);
	return rc < 0 ? rc : look_each(l, ds->count, examine_volume, NULL);
}

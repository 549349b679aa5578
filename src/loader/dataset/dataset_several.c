/* SPDX-License-Identifier: MIT */
/*
 * Several datasets as one: its examples are those of the first dataset, then
 * those of the second, and so on. Classes with the same name are one class.
 * dataset_query.c passes queries on to the dataset of an example.
 */
#include "loader/dataset/dataset_several_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"

/* -- Classes --------------------------------------------------------------- */

static uint64_t classes_of(const struct dataset *ds)
{
	return array_count(
		&ds->section[SECTION_CLASSES], sizeof(struct ds_class));
}

/* Is the label of each class the number that is its name? */
static bool is_numeric(const struct dataset *ds)
{
	const struct ds_class *c = array_data(&ds->section[SECTION_CLASSES]);

	for (uint64_t i = 0; i < classes_of(ds); i++) {
		size_t bytes;
		const char *name = dataset_class_name(ds, c[i].label, &bytes);
		char text[16];
		int n = snprintf(text, sizeof(text), "%u", c[i].label);

		if ((size_t)n != bytes || memcmp(name, text, bytes) != 0)
			return false;
	}
	return true;
}

/* Add the names of all classes, and note their numbers in place of labels. */
static int join_names(struct labels *l, struct ds_joined *part)
{
	uint64_t n = dataset_classes(part->ds);

	part->label = calloc(n ? n : 1, sizeof(*part->label));
	if (!part->label)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		size_t bytes;
		const char *name = dataset_class_name(part->ds, i, &bytes);

		part->label[i] = name ? labels_add(l, name, bytes) : -1;
		if (part->label[i] == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int number_all(struct labels *l, struct dataset *ds)
{
	bool numeric = true;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < ds->joined_count; i++) {
		rc = join_names(l, &ds->joined[i]);
		numeric = numeric && is_numeric(ds->joined[i].ds);
	}
	if (rc == 0)
		rc = labels_number(l, ds, numeric);
	return rc;
}

/* Create the classes, and replace the numbers of their names by labels. */
static int join_classes(struct dataset *ds)
{
	struct labels l = {.text = {0}};
	int rc = number_all(&l, ds);

	for (uint32_t i = 0; rc == 0 && i < ds->joined_count; i++) {
		struct ds_joined *part = &ds->joined[i];

		for (uint64_t j = 0; j < dataset_classes(part->ds); j++)
			labels_replace(&l, &part->label[j]);
	}
	labels_release(&l);
	return rc;
}

/* -- Opening --------------------------------------------------------------- */

static int add_dataset(struct dataset *ds, const struct dataset_options *o,
	const char *path, struct error *err)
{
	struct dataset_options options = *o;
	struct ds_joined *part = &ds->joined[ds->joined_count];
	int rc;

	options.path = path;
	rc = ds_open_one(&part->ds, &options, err);
	if (rc < 0)
		return rc;
	ds->joined_count++;
	part->path = strdup(path);
	if (!part->path)
		return -ENOMEM;
	part->begin = ds->count;
	part->shard = ds->shard_count;
	ds->count += dataset_count(part->ds);
	ds->shard_count += dataset_shards(part->ds);
	ds->links += dataset_links(part->ds);
	return 0;
}

static int add_all(
	struct dataset *ds, const struct dataset_options *o, struct error *err)
{
	CLEANUP_FREE char *paths = strdup(o->path);
	char *rest = paths, *path;
	int rc = paths ? 0 : -ENOMEM;

	while (rc == 0 && (path = strsep(&rest, "\n"))) {
		if (!*path)
			continue;
		if (ds->joined_count == DATASETS_MAX)
			return error_set(err, -EINVAL,
				"there are more than %d datasets",
				DATASETS_MAX);
		rc = add_dataset(ds, o, path, err);
	}
	if (rc == 0 && ds->joined_count == 0)
		return error_set(err, -EINVAL, "no dataset is given");
	return rc;
}

/* The file system of all datasets, or 0 if they differ. */
static uint32_t common_fs_type(const struct dataset *ds)
{
	uint32_t type = dataset_fs_type(ds->joined[0].ds);

	for (uint32_t i = 1; i < ds->joined_count; i++)
		if (dataset_fs_type(ds->joined[i].ds) != type)
			return 0;
	return type;
}

static void finish(struct dataset *ds)
{
	ds->fs_type = common_fs_type(ds);
	ds->members = ds->joined[0].ds->members;
	ds->fingerprint = ds->joined_count;
	for (uint32_t i = 0; i < ds->joined_count; i++) {
		uint64_t part = dataset_fingerprint(ds->joined[i].ds);

		ds->fingerprint = hash64(&part, sizeof(part), ds->fingerprint);
	}
}

static int open_several(struct dataset **out, const struct dataset_options *o,
	struct error *err)
{
	struct dataset *ds = NULL;
	int rc = 0;

	if (o->root || o->annotations)
		return error_set(err, -EINVAL,
			"%s is set: there must be one dataset",
			o->root ? "root" : "annotations");
	ds = calloc(1, sizeof(*ds));
	if (!ds)
		return error_set(err, -ENOMEM, "%m");
	ds->dir = -1;
	ds->joined = calloc(DATASETS_MAX, sizeof(*ds->joined));
	rc = ds->joined ? add_all(ds, o, err) : -ENOMEM;
	if (rc == 0)
		rc = join_classes(ds);
	if (rc == -ENOMEM)
		rc = error_set(err, rc, "%m");
	if (rc < 0) {
		dataset_close(ds);
		return rc;
	}
	finish(ds);
	*out = ds;
	return 0;
}

int dataset_open(struct dataset **out, const struct dataset_options *options,
	struct error *err)
{
	*out = NULL;
	if (options->path && strchr(options->path, '\n'))
		return open_several(out, options, err);
	return ds_open_one(out, options, err);
}

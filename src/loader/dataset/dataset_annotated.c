/* SPDX-License-Identifier: MIT */
/* The annotations of a dataset: opens them, and checks that they belong to its
 * examples. Called by the thread that opens the dataset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "loader/dataset/annotations.h"
#include "loader/dataset/dataset_look_impl.h"

/* Called when two examples have found the same image of the annotations. A list
 * may name a file twice, so this is right if both are the same file. Otherwise
 * two files would share the boxes of one. */
static int check_shared(const struct dataset *ds, uint64_t i, uint64_t k,
	const char *path, struct error *err)
{
	struct example first, second;

	dataset_example(ds, i, &first);
	dataset_example(ds, k, &second);
	if (strcmp(first.name, second.name) == 0)
		return 0;
	return error_set(err, -EINVAL,
		"annotations: '%s' and '%s' find the same image in '%s'; write "
		"more of their paths into its file_name",
		first.name, second.name, path);
}

/* Look up all examples in the annotations, and check that no two files find the
 * same image, because its boxes would be wrong for one of them. Sets *any if at
 * least one example is annotated. */
static int look_up_examples(const struct dataset *ds, const char *path,
	bool *any, struct error *err)
{
	struct annotations_totals totals;
	CLEANUP_FREE uint64_t *found = NULL;
	struct annotation_rows rows;
	struct example ex;
	int rc = 0;

	annotations_totals(ds->annotations, &totals);
	found = calloc(totals.images + 1, sizeof(*found));
	if (!found)
		return error_set(err, -ENOMEM, "%m");
	for (uint64_t i = 0; rc == 0 && i < dataset_count(ds); i++) {
		dataset_example(ds, i, &ex);
		if (annotations_find(ds->annotations, ex.name, &rows) < 0)
			continue;
		*any = true;
		if (found[rows.image])
			rc = check_shared(
				ds, found[rows.image] - 1, i, path, err);
		else
			found[rows.image] = i + 1;
	}
	return rc;
}

int ds_annotations_open(struct dataset *ds, const char *path,
	const char *cache_dir, struct error *err)
{
	struct example first;
	bool any = false;
	int rc = annotations_open(&ds->annotations, path, cache_dir, err);

	if (rc < 0)
		return rc;
	ds->fingerprint = annotations_hash(ds->annotations, ds->fingerprint);
	rc = look_up_examples(ds, path, &any, err);
	if (rc < 0 || any)
		return rc;
	dataset_example(ds, 0, &first);
	return error_set(err, -ENODATA,
		"annotations: '%s' has no image of the dataset, such as '%s'",
		path, first.name);
}

const struct annotations *dataset_annotations(const struct dataset *ds)
{
	return ds->annotations;
}

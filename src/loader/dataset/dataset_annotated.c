/* SPDX-License-Identifier: MIT */
/* The annotations of a dataset: opens them, and checks that they belong to its
 * examples. Called by the thread that opens the dataset. */
#include <errno.h>
#include <string.h>

#include "loader/dataset/annotations.h"
#include "loader/dataset/dataset_look_impl.h"

static bool any_annotated(const struct dataset *ds)
{
	struct annotation_rows rows;
	struct example ex;

	for (uint64_t i = 0; i < dataset_count(ds); i++) {
		dataset_example(ds, i, &ex);
		if (annotations_find(ds->annotations, ex.name, &rows) == 0)
			return true;
	}
	return false;
}

int ds_annotations_open(struct dataset *ds, const char *path,
	const char *cache_dir, struct error *err)
{
	struct example first;
	int rc = annotations_open(&ds->annotations, path, cache_dir, err);

	if (rc < 0)
		return rc;
	ds->fingerprint = annotations_hash(ds->annotations, ds->fingerprint);
	if (any_annotated(ds))
		return 0;
	dataset_example(ds, 0, &first);
	return error_set(err, -ENODATA,
		"annotations: '%s' has no image of the dataset, such as '%s'",
		path, first.name);
}

const struct annotations *dataset_annotations(const struct dataset *ds)
{
	return ds->annotations;
}

/* SPDX-License-Identifier: MIT */
/* Several datasets as one; see dataset_several.c. Constant after the open, like
 * a single dataset. */
#ifndef DATASET_SEVERAL_IMPL_H
#define DATASET_SEVERAL_IMPL_H

#include "loader/dataset/dataset_table_impl.h"

/* One of several datasets. */
struct ds_joined {
	struct dataset *ds;
	char *path;
	uint64_t begin; /* number of its first example */
	uint32_t shard; /* number of its first shard */
	int32_t *label; /* for each of its labels, the common one; or -1 */
};

/* Open a single dataset, like dataset_open(). */
int ds_open_one(struct dataset **out, const struct dataset_options *options,
	struct error *err);

#endif

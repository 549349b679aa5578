/* SPDX-License-Identifier: MIT */
/*
 * The index of a dataset: the results of a look in a file that later opens map.
 * Entered by the driver of a look.
 */
#ifndef DATASET_KEPT_IMPL_H
#define DATASET_KEPT_IMPL_H

#include "loader/dataset/dataset_look_impl.h"

#define INDEX_NAME_MAX 64

/*
 * Map the file with that key into *ds and check it, so that no access leaves
 * it. Returns -ENOENT, -EBADMSG, or another -errno, with *ds unchanged.
 */
int ds_index_map(
	struct dataset *ds, int cache_fd, const char *name, struct hash128 key);

/* Do both in the look's cache directory. On -errno the caller must look. */
int ds_index_open(struct look *l);
/* Write the index, if it can be trusted. */
void ds_index_keep(struct look *l);

/* Write the index under that name, or return -errno. */
int ds_index_write(const struct dataset *ds, int cache_fd, const char *name,
	struct hash128 key);

#endif

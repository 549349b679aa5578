/* SPDX-License-Identifier: MIT */
/*
 * The catalogue of a dataset: the results of a look in a file that later opens
 * map. Entered by the driver of a look.
 */
#ifndef DATASET_CATALOGUE_IMPL_H
#define DATASET_CATALOGUE_IMPL_H

#include "loader/dataset/dataset_look_impl.h"

#define CATALOGUE_NAME_MAX 64

/*
 * Map the file with that key into *ds and check it, so that no access leaves
 * it. Returns -ENOENT, -EBADMSG, or another -errno, with *ds unchanged.
 */
int ds_catalogue_map(
	struct dataset *ds, int cache_fd, const char *name, struct hash128 key);

/* Do both in the look's cache directory. On -errno the caller must look. */
int ds_catalogue_open(struct look *l);
/* Write the catalogue, if it can be trusted. */
void ds_catalogue_keep(struct look *l);

/* Write the catalogue under that name, or return -errno. */
int ds_catalogue_write(const struct dataset *ds, int cache_fd, const char *name,
	struct hash128 key);

#endif

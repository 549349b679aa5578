/* SPDX-License-Identifier: MIT */
/*
 * The catalogue of a dataset: a file with the results of a look, which is
 * mapped when the dataset is opened again. Called by the driver of a look.
 */
#ifndef DATASET_CATALOGUE_IMPL_H
#define DATASET_CATALOGUE_IMPL_H

#include "loader/dataset/dataset_look_impl.h"

#define CATALOGUE_NAME_MAX 64

/* Files in a cache directory. Other files than catalogues of datasets use these
 * functions, too. */

/* Open a directory and check that it belongs to the user. With `make`, the
 * directory and its parent are created if they do not exist. Returns the
 * descriptor or -errno. */
int ds_catalogue_open_dir(const char *path, bool make);
/* Create a file for writing. Returns its descriptor, -EEXIST if another process
 * is writing this file now, or another -errno. */
int ds_catalogue_create(int cache_fd, const char *name);
/* Map a file that belongs to the user and that no other user can write. Returns
 * 0 or -errno. */
int ds_catalogue_map_file(
	int cache_fd, const char *name, void **out, size_t *bytes);

/*
 * Map the file of this key into *ds, and check its tables, so that no access to
 * them can leave the mapping. Returns 0, -ENOENT, -EBADMSG, or another -errno;
 * on failure *ds is unchanged.
 */
int ds_catalogue_map(
	struct dataset *ds, int cache_fd, const char *name, struct hash128 key);

/* Find the catalogue in the look's cache directory, map it, and check that the
 * dataset has not changed. Returns 0, or -errno if the caller must scan the
 * dataset. */
int ds_catalogue_open(struct look *l);
/* Write the catalogue, unless an mtime is too recent to be trusted. */
void ds_catalogue_keep(struct look *l);

/* Write the catalogue to a file with this name. Returns 0 or -errno. */
int ds_catalogue_write(const struct dataset *ds, int cache_fd, const char *name,
	struct hash128 key);

#endif

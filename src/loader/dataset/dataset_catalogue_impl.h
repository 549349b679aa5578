/* SPDX-License-Identifier: MIT */
/*
 * The catalogue of a dataset: a file with the results of a look, which is
 * mapped when the dataset is opened again. Entered by the driver of a look.
 */
#ifndef DATASET_CATALOGUE_IMPL_H
#define DATASET_CATALOGUE_IMPL_H

#include "loader/dataset/dataset_look_impl.h"

#define CATALOGUE_NAME_MAX 64

/* Files of the cache directory, for whoever keeps one there. */

/* Open a directory and check that the user owns it; returns the descriptor or
 * -errno. With `make`, the directory and its parent are created if they do not
 * exist. */
int ds_catalogue_open_dir(const char *path, bool make);
/* Create the file to write. Returns its descriptor, or -EEXIST while another
 * process is writing it. */
int ds_catalogue_create(int cache_fd, const char *name);
/* Map a file of the user's that nobody else can write. Returns 0 or -errno. */
int ds_catalogue_map_file(
	int cache_fd, const char *name, void **out, size_t *bytes);

/*
 * Map the file with that key into *ds, and check that no access to the tables
 * can leave the mapping. On failure *ds is unchanged: -ENOENT, -EBADMSG, or
 * another -errno.
 */
int ds_catalogue_map(
	struct dataset *ds, int cache_fd, const char *name, struct hash128 key);

/* Find the catalogue in the look's cache directory, map it, and check that it
 * is still valid. On -errno the caller must scan the dataset. */
int ds_catalogue_open(struct look *l);
/* Write the catalogue, if it can be trusted. */
void ds_catalogue_keep(struct look *l);

/* Write the catalogue under that name, or return -errno. */
int ds_catalogue_write(const struct dataset *ds, int cache_fd, const char *name,
	struct hash128 key);

#endif

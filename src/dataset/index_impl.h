/* SPDX-License-Identifier: MIT */
/*
 * The kept index of a dataset: what a look found, in a file that later opens
 * map. Entered by the driver of a look.
 */
#ifndef DATASET_INDEX_IMPL_H
#define DATASET_INDEX_IMPL_H

#include "dataset/look_impl.h"

#define INDEX_NAME_MAX 64

/* What the dataset and its options are, as a key; and the file's name. */
struct hash128 ds_index_key(const struct look *l);
void ds_index_name(struct hash128 key, char name[INDEX_NAME_MAX]);

/*
 * Map a file of that key into *ds and check it, so that no access leaves it:
 * -ENOENT, -EBADMSG, or another -errno; then *ds is as before.
 */
int ds_index_map(
	struct dataset *ds, int cache_fd, const char *name, struct hash128 key);

/* Is everything that the dataset watches as it was? */
bool ds_index_is_fresh(struct look *l, const struct dataset *ds);

/* Both of these in the look's cache directory. -errno: look. */
int ds_index_open(struct look *l);
/* Write it, if it can be trusted. */
void ds_index_keep(struct look *l);

/* The user's own, or -errno; `make` it and its parent, if need be. */
int ds_index_open_dir(const char *path, bool make);
int ds_index_write(const struct dataset *ds, int cache_fd, const char *name,
	struct hash128 key);

#endif

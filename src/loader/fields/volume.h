/* SPDX-License-Identifier: MIT */
/*
 * Crops of volumes: arrays of three dimensions, perhaps with channels before
 * them, in C order. The region that all servings of an example need is read in
 * runs of the file; then each serving cuts its own crop out of the region. Pure
 * functions; any thread.
 */
#ifndef FIELDS_VOLUME_H
#define FIELDS_VOLUME_H

#include "loader/fields/fields.h"

/* An array in a file, and the region that is read. */
struct volume {
	uint64_t at; /* offset of the first value in the file */
	uint64_t shape[3];
	uint64_t start[3], size[3]; /* region; a size of 0: there is none yet */
};

/* A crop; a flip mirrors an axis. */
struct volume_crop {
	uint64_t start[3];
	bool flip[3];
};

/* How crops are chosen. */
enum volume_choice {
	VOLUME_CENTRE, /* for evaluation */
	VOLUME_RANDOM,
	VOLUME_RANDOM_FLIP, /* and each axis is mirrored with chance 1/2 */
};

/* Choose the crop of a serving by its seed. */
void volume_crop(const struct array_crops *how, const struct volume *v,
	enum volume_choice choice, uint64_t seed, struct volume_crop *out);

/* Enlarge the region so that it contains a crop. */
void volume_add(struct volume *v, const struct array_crops *how,
	const struct volume_crop *crop);

/* The runs of a region. Run 0 is the last one in the file,
 * because a mount would take ascending reads for sequential ones, and fetch
 * what follows the region. All runs have the same size. In memory, they follow
 * each other in a distance that is a multiple of 8 bytes. */
struct volume_runs {
	uint64_t count, bytes;
	size_t apart; /* distance of two runs in memory */
};

void volume_runs(const struct array_crops *how, const struct volume *v,
	struct volume_runs *out);
uint64_t volume_run_offset(
	const struct array_crops *how, const struct volume *v, uint64_t n);

/* Copy a crop from the runs of the region to a sample. */
void volume_cut(const struct array_crops *how, const struct volume *v,
	const struct volume_crop *crop, const uint8_t *runs, uint8_t *out);

#endif

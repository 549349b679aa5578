/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a loader as the loader uses it: checked, with the
 * defaults filled in. Constant after settings_init().
 */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include <refrain/loader.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "loader/image/image.h"
#include "common/schedule/schedule.h"
#include "loader/core/settings_table.h"

struct slab;

/* A part of an example in memory; `data` is NULL if the example lacks it. */
struct part_view {
	const uint8_t *data;
	size_t bytes;
};

/* A serving whose sample is made. */
struct member_serving {
	uint64_t index; /* of the example that is in the batch */
	uint64_t seed;
	const struct refrain_crop *crop;
	const struct part_view *members;
	struct slab *slab;
	uint32_t place; /* in the slab */
};

/*
 * The members of examples that are needed. The text is that of dataset_options
 * and must live as long as the loader; NULL: none. Workers call load() and
 * map(), which may be NULL, without a lock.
 */
struct settings_members {
	const char *text;
	uint32_t optional; /* bit n: an example may lack member n */
	/* Checks the members before the image is decoded. Returns 0, or -errno
	 * with err set if the example is damaged. */
	int (*load)(void *arg, uint64_t index, const struct part_view *members,
		struct error *err);
	/* Called after each sample. Returns 0 or -errno. */
	int (*map)(void *arg, const struct member_serving *s);
	void *arg;
};

struct settings {
	/* Its pointers belong to the caller. They are valid during
	 * refrain_open() only, except functions and their contexts. */
	struct refrain_config c;
	struct schedule_echo echo; /* at the beginning */
	struct schedule_echo echo_max;
	uint64_t window;       /* of the schedule; 0: the schedule chooses */
	bool changes;	       /* the factor changes: REFRAIN_ECHO_AUTO */
	bool measures;	       /* ... because of measurements, not by a log */
	uint32_t ahead_max;    /* examples that may be read before their steps
				  are planned */
	uint32_t ahead_least;  /* ... even if memory is small */
	const char *memory_of; /* memory_bytes was not set: a quarter of this */
	struct augment_config augment;
	bool jpeg;	   /* decoded by our decoder */
	bool plain;	   /* neither decoded nor augmented: copied */
	bool image_sample; /* our augmenter makes the samples */
	size_t sample_bytes;
	/* The limit for the encoded bytes of an example. A JPEG of max_pixels
	 * stays below it, even with metadata. UINT64_MAX: only memory limits
	 * them. */
	uint64_t encoded_max;
	struct settings_members members;
};

/* Returns -EINVAL with the name of the wrong member, or -E2BIG if the caller's
 * struct is longer and its unknown members are not all 0. */
int settings_init(struct settings *s, const struct refrain_config *config,
	struct error *err);

/* Fill in the configuration of the schedule for a dataset of `examples`
 * examples. */
void settings_schedule(const struct settings *s, uint64_t examples,
	struct schedule_config *out);

/* The schedule of an echo stage, whose examples nobody has counted. */
void settings_open_schedule(const struct settings *s, uint64_t seed,
	struct schedule_echo echo, struct schedule_config *out);

/* Set the members that the configuration needs. Returns 0 or -EINVAL. */
int settings_members(struct settings *s, struct error *err);

/* The name of the column that has the samples. */
const char *settings_samples(const struct settings *s);

/* The message of the calling thread for calls without a handle. */
struct error *settings_error(void);

#endif

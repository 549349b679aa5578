/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a loader in the form that the loader uses: checked, and
 * with defaults filled in. Constant after settings_init().
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

/* A serving of an example, after its sample was made. */
struct member_serving {
	uint64_t index; /* the example in the batch, possibly a substitute */
	uint64_t seed;
	const struct refrain_crop *crop;
	const struct part_view *members;
	struct slab *slab;
	uint32_t place; /* the position in the slab */
};

/*
 * The members of examples that the configuration needs. The text has the form
 * of dataset_options.members and must live as long as the loader; NULL: no
 * members. Workers call load() and map() without a lock; either may be NULL.
 */
struct settings_members {
	const char *text;
	uint32_t optional; /* bit n: an example may lack member n */
	/* Checks the members before the image is decoded. Returns 0, or -errno
	 * with err set, which means that the example is damaged. */
	int (*load)(void *arg, uint64_t index, const struct part_view *members,
		struct error *err);
	/* Called after each sample was made. Returns 0 or -errno. */
	int (*map)(void *arg, const struct member_serving *s);
	void *arg;
};

struct settings {
	/* The configuration. Its pointers belong to the caller and are valid
	 * only during refrain_open(), except functions and their contexts. */
	struct refrain_config c;
	/* The echo factor at the beginning of the run */
	struct schedule_echo echo;
	struct schedule_echo echo_max;
	uint64_t window; /* window of the schedule; 0: schedule's default */
	bool changes;	 /* echo is auto, so that the factor changes */
	bool measures;	 /* changes follow measurements, not echo_log */
	/* The maximum number of examples that may be read before their steps
	 * are planned */
	uint32_t ahead_max;
	/* The least value of that number if memory is small */
	uint32_t ahead_least;
	/* If memory_bytes was not set, it is a quarter of some limit. This is
	 * the name of that limit */
	const char *memory_of;
	struct augment_config augment;
	bool jpeg;  /* examples are JPEG or PNG that the library decodes */
	bool plain; /* samples are copies of the records */
	bool image_sample; /* the library augments, so samples are images */
	size_t sample_bytes;
	/* The limit for the encoded bytes of an example. A JPEG with max_pixels
	 * pixels stays below this limit, even with metadata. UINT64_MAX: only
	 * memory limits the size. */
	uint64_t encoded_max;
	struct settings_members members;
};

/* Check a configuration and fill in defaults. Returns 0, -EINVAL with the name
 * of the wrong member, or -E2BIG if the caller's struct is longer than this
 * library's and the additional bytes are not all 0. */
int settings_init(struct settings *s, const struct refrain_config *config,
	struct error *err);

/* Fill in the configuration of the schedule for a dataset of `examples`
 * examples. */
void settings_schedule(const struct settings *s, uint64_t examples,
	struct schedule_config *out);

/* Fill in the configuration of the schedule of an echo stage, which does not
 * know the number of examples. */
void settings_open_schedule(const struct settings *s, uint64_t seed,
	struct schedule_echo echo, struct schedule_config *out);

/* Set s->members to the members that the configuration needs. Returns 0 or
 * -EINVAL. */
int settings_members(struct settings *s, struct error *err);

/* Returns the name of the column that contains the samples. */
const char *settings_samples(const struct settings *s);

/* Returns the calling thread's message for functions that have no handle. */
struct error *settings_error(void);

#endif

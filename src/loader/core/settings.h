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
#include "loader/fields/columns.h"
#include "loader/fields/volume.h"

/* Room for the places of the members of all fields. */
#define MEMBERS_TEXT_MAX (FIELDS_MAX * (FIELD_MEMBER_MAX + 1))
#define MEMBER_NONE (-1)      /* the field is the image or the class */
#define MEMBER_ANNOTATED (-2) /* its rows are in the annotations */

/* The members of examples that the fields need. */
struct settings_members {
	/* In the form of dataset_options.members; "": no members */
	char text[MEMBERS_TEXT_MAX];
	uint32_t optional; /* bit n: an example may lack member n */
	/* For each field the number of its member, MEMBER_NONE or
	 * MEMBER_ANNOTATED */
	int of[FIELDS_MAX];
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
	/* examples are images that the library decodes */
	bool library_decodes;
	bool plain; /* samples are copies of records, or windows of tokens */
	bool image_sample; /* the library augments, so samples are images */
	size_t sample_bytes;
	/* The limit for the encoded bytes of an example. A JPEG with max_pixels
	 * pixels stays below this limit, even with metadata. UINT64_MAX: only
	 * memory limits the size. */
	uint64_t encoded_max;
	/* The fields of the examples and where they are in a batch; both are
	 * empty if refrain_config.fields is not set */
	struct fields fields;
	struct columns columns;
	struct settings_members members;
	uint64_t mix_hash; /* hash of the text of the mix; 0: no mix */
};

/* Check a configuration and fill in defaults. Returns 0, -EINVAL with the name
 * of the wrong member, or -E2BIG if the caller's struct is longer than this
 * library's and the additional bytes are not all 0. */
int settings_init(struct settings *s, const struct refrain_config *config,
	struct error *err);

/* Fill in the configuration of the schedule for a dataset of `examples`
 * examples. */
void settings_schedule(const struct settings *s, uint64_t examples,
	const struct part_mix *mix, struct schedule_config *out);

/* Fill in the configuration of the schedule of an echo stage, which does not
 * know the number of examples. */
void settings_open_schedule(const struct settings *s, uint64_t seed,
	struct schedule_echo echo, struct schedule_config *out);

/* Parse the fields. Returns 0, or -EINVAL. */
int settings_parse_fields(struct settings *s, struct error *err);

/* Check the fields, and set the members and columns of `s`. Everything else
 * must be set. Returns 0, -EINVAL or -E2BIG. */
int settings_fields(struct settings *s, struct error *err);

/* Returns how the examples are cut from tokens, or NULL: they are not tokens.
 */
const struct token_windows *settings_tokens(const struct settings *s);

/* Returns which crops of arrays are samples, or NULL: the examples are not
 * arrays. */
const struct array_crops *settings_array(const struct settings *s);
/* Returns how these crops are chosen. */
enum volume_choice settings_volume_choice(const struct settings *s);

/* Return the type of the samples, an enum refrain_type, and the size of a value
 * of samples that are not images. */
int settings_sample_type(const struct settings *s);
size_t settings_value_bytes(const struct settings *s);

/* Returns a hash of a member that is a text. For the member `fields`, this is a
 * hash of the meaning of the text. */
uint64_t settings_text_hash(const struct settings *s, const struct member *m);

/* Return the names of the columns that contain the samples and the classes. */
const char *settings_samples(const struct settings *s);
const char *settings_classes(const struct settings *s);

/* Returns the calling thread's message for functions that have no handle. */
struct error *settings_error(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The table of the configuration's members; see settings_table.h. All functions
 * are pure.
 */
#include "loader/core/settings_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/schedule/schedule.h"

#define SIDE_MAX 16384

#define AT(m)                                                                  \
	.name = #m, .offset = offsetof(struct refrain_config, m),              \
	.bytes = sizeof(((struct refrain_config *)0)->m)
#define LIMITS(default_, min_, max_)                                           \
	.fallback = (default_), .min = (min_), .max = (max_)

#define NUMBER(m, k, s, limits, a, h)                                          \
	{                                                                      \
		AT(m), .type = REFRAIN_MEMBER_NUMBER, .kind = KIND_##k,        \
		       .saved = SAVED_##s, limits, .arg = a, .help = h         \
	}
#define REAL(m, k, s, limits, a, h)                                            \
	{                                                                      \
		AT(m), .type = REFRAIN_MEMBER_REAL, .kind = KIND_##k,          \
		       .saved = SAVED_##s, limits, .arg = a, .help = h         \
	}
#define WORD(m, last, s, a, h)                                                 \
	{                                                                      \
		AT(m), .type = REFRAIN_MEMBER_WORD, .kind = KIND_I32,          \
		       .saved = SAVED_##s, LIMITS(0, 0, last), .arg = a,       \
		       .help = h                                               \
	}
#define BYTES(m, k, s, h)                                                      \
	{                                                                      \
		AT(m), .type = REFRAIN_MEMBER_BYTES, .kind = KIND_##k,         \
		       .saved = SAVED_##s, .arg = "SIZE", .help = h            \
	}
#define TEXT(m, s, a, h)                                                       \
	{                                                                      \
		AT(m), .type = REFRAIN_MEMBER_TEXT, .kind = KIND_TEXT,         \
		       .saved = SAVED_##s, .arg = a, .help = h                 \
	}
#define OTHER(m, k, s, limits)                                                 \
	{                                                                      \
		AT(m), .type = MEMBER_OTHER, .kind = KIND_##k,                 \
		       .saved = SAVED_##s, limits                              \
	}
#define NONE LIMITS(0, 0, 0)
#define BIT(n, b, s, h)                                                        \
	{                                                                      \
		.name = n, .type = REFRAIN_MEMBER_FLAG, .kind = KIND_U32,      \
		.offset = offsetof(struct refrain_config, flags),              \
		.bytes = sizeof(uint32_t), .bit = REFRAIN_FLAG_##b,            \
		.saved = SAVED_##s, .help = h                                  \
	}

#define SAVED_HASHED(n) (SAVED_HASH + (n))

#define KIND_SIZE (sizeof(size_t) == sizeof(uint64_t) ? KIND_U64 : KIND_U32)

static const struct member table[] = {
	OTHER(size, SIZE, NOT, NONE),
	TEXT(dataset, DATASET, "PATH", "The dataset."),
	WORD(source, REFRAIN_SOURCE_RAW, DATASET, "auto|folder|list|tar|raw",
		"Kind of the dataset (default: auto)."),
	TEXT(root, DATASET, "DIR",
		"Directory that the paths of a list are relative to (default: "
		"the list's directory)."),
	NUMBER(record_bytes, U32, HASHED(14), LIMITS(0, 0, UINT32_MAX), "N",
		"Size of a raw record in bytes, including its label."),
	NUMBER(label_bytes, U32, HASHED(15), LIMITS(0, 0, 8), "N",
		"Size of the label at the start of a raw record, in bytes "
		"(default: 0)."),
	NUMBER(batch, U32, SCHEDULE, LIMITS(0, 1, SCHEDULE_BATCH_MAX), "B",
		"Examples per step."),
	NUMBER(epochs, U32, SCHEDULE, LIMITS(1, 1, UINT32_MAX), "N",
		"Number of epochs (default: 1). Each epoch serves every "
		"example fresh exactly once."),
	NUMBER(seed, U64, SCHEDULE, LIMITS(0, 0, 0), "S",
		"Seed for shuffling and augmentation (default: 0)."),
	{
		AT(echo),
		.type = REFRAIN_MEMBER_ECHO,
		.kind = KIND_F64,
		.saved = SAVED_SCHEDULE,
		LIMITS(1, 1, SCHEDULE_ECHO_MAX),
		.arg = "E",
		.help = "Serve each decoded example E times, such as 2, 2.5 "
			"or 5/2 (default: 1). With auto, the loader measures "
			"which factor hides the time for reading and "
			"decoding.",
	},
	WORD(echo_point, REFRAIN_ECHO_BATCH, SCHEDULE, "before|after|batch",
		"Echo the decoded example with a new crop (before, the "
		"default), the augmented example (after), or the whole batch "
		"(batch)."),
	NUMBER(window, U32, SCHEDULE, LIMITS(0, 0, UINT32_MAX), "N",
		"Maximum number of examples with echoes outstanding (default: "
		"16 batches, at least 1024)."),
	NUMBER(min_lag, U32, SCHEDULE, LIMITS(1, 1, SCHEDULE_LAG_MAX), "N",
		"Minimum number of steps between two servings of one example "
		"(default: 1)."),
	NUMBER(shuffle_window, U32, SCHEDULE, LIMITS(0, 0, UINT32_MAX), "N",
		"Shuffle only within blocks of N examples, for media that "
		"must be read in sequence."),
	NUMBER(rank, U32, SCHEDULE, LIMITS(0, 0, UINT32_MAX), "R",
		"Number of this trainer, from 0 to world - 1 (default: 0)."),
	NUMBER(world, U32, SCHEDULE, LIMITS(1, 1, UINT32_MAX), "W",
		"Number of trainers that divide the dataset among them "
		"(default: 1)."),
	WORD(last, REFRAIN_LAST_DROP, SCHEDULE, "short|drop",
		"Deliver the last batch of the run if it is short (default), "
		"or drop it."),
	OTHER(flags, U32, HASHED(13), LIMITS(0, 0, UINT32_MAX)),
	NUMBER(height, U32, HASHED(0), LIMITS(224, 1, SIDE_MAX), "N",
		"Height of the images in a batch (default: their width, or "
		"224)."),
	NUMBER(width, U32, HASHED(1), LIMITS(224, 1, SIDE_MAX), "N",
		"Width of the images in a batch (default: their height, or "
		"224)."),
	WORD(type, REFRAIN_F32, HASHED(2), "u8|f16|f32",
		"Type of a pixel value (default: u8)."),
	WORD(layout, REFRAIN_NCHW, HASHED(3), "nhwc|nchw",
		"Order of the dimensions of a batch (default: nhwc)."),
	WORD(augment, REFRAIN_AUGMENT_IOU, HASHED(4), "train|eval|none|fit|iou",
		"Random crop and flip (train, the default), centre crop "
		"(eval), the whole image resized without (none) or with its "
		"aspect ratio (fit), or a random crop that contains boxes "
		"(iou)."),
	REAL(mean, F32, HASHED(5), LIMITS(0, -1000, 1000), "R,G,B",
		"Mean of each channel, for values from 0 to 1 (default: "
		"ImageNet's, unless std is set)."),
	REAL(std, F32, HASHED(6), LIMITS(1, 1e-6, 1000), "R,G,B",
		"Standard deviation of each channel (default: ImageNet's, "
		"unless mean is set)."),
	REAL(area_min, F32, HASHED(7), LIMITS(0.08, 1e-4, 1), "X",
		"Minimum area of a random crop, as a share of the image "
		"(default: 0.08)."),
	REAL(area_max, F32, HASHED(8), LIMITS(1, 1e-4, 1), "X",
		"Maximum area of a random crop, as a share of the image "
		"(default: 1)."),
	REAL(aspect_min, F32, HASHED(9), LIMITS(3. / 4, 0.01, 100), "X",
		"Minimum ratio of width to height of a random crop (default: "
		"3/4)."),
	REAL(aspect_max, F32, HASHED(10), LIMITS(4. / 3, 0.01, 100), "X",
		"Maximum ratio of width to height of a random crop (default: "
		"4/3)."),
	REAL(jitter, F32, HASHED(11), LIMITS(0, 0, 1000), "B,C,S",
		"Change brightness, contrast and saturation by random factors "
		"from 1 - x to 1 + x (default: 0)."),
	NUMBER(cutout, U32, HASHED(12), LIMITS(0, 0, SIDE_MAX), "N",
		"Side of a grey square drawn at a random place of each image "
		"(default: 0, none)."),
	OTHER(decode, POINTER, HASHED(19), NONE),
	OTHER(augment_fn, POINTER, HASHED(20), NONE),
	OTHER(ctx, POINTER, NOT, NONE),
	BYTES(decoded_max_bytes, SIZE, NOT,
		"Maximum size in bytes of one example that the decode "
		"callback returns."),
	BYTES(sample_bytes, SIZE, HASHED(16),
		"Size in bytes of one sample in a batch, if a callback writes "
		"it."),
	WORD(policy, REFRAIN_FAIL, HASHED(17), "substitute|zero|fail",
		"How to handle damaged examples: take another one "
		"(substitute, the default), fill with zeros (zero), or fail."),
	NUMBER(max_pixels, U64, HASHED(18), LIMITS(0, 0, 0), "N",
		"Treat images with more pixels as damaged (default: 200 "
		"million)."),
	NUMBER(threads, U32, NOT, LIMITS(0, 1, 1024), "N",
		"Number of threads that decode and augment (default: one per "
		"processor)."),
	NUMBER(batches_ahead, U32, NOT, LIMITS(4, 1, 4096), "N",
		"Batches to prepare ahead of the trainer (default: 4)."),
	NUMBER(reads_ahead, U32, NOT, LIMITS(64, 1, 4096), "N",
		"Examples to read concurrently (default: 64)."),
	BYTES(memory_bytes, U64, NOT,
		"Limit for all memory of the loader (default: a quarter of "
		"what the process may use)."),
	OTHER(cpus, POINTER, NOT, NONE),
	OTHER(cpu_count, U32, NOT, LIMITS(0, 0, 4096)),
	NUMBER(nice, I32, NOT, LIMITS(0, 0, 19), "N",
		"Increment of the nice value for the loader's threads "
		"(default: 0)."),
	OTHER(alloc, POINTER, NOT, NONE),
	OTHER(free, POINTER, NOT, NONE),
	OTHER(alloc_ctx, POINTER, NOT, NONE),
	OTHER(state, POINTER, NOT, NONE),
	OTHER(state_bytes, SIZE, NOT, NONE),
	REAL(echo_max, F64, SCHEDULE, LIMITS(4, 1, SCHEDULE_ECHO_MAX), "E",
		"Upper limit for the echo factor if echo is auto (default: "
		"4)."),
	TEXT(echo_log, NOT, "LINES",
		"Changes of the echo factor to make instead of measuring, as "
		"an earlier run with auto logged them."),
	NUMBER(open_timeout_ms, I32, NOT, LIMITS(30000, -1, INT32_MAX), "MS",
		"Fail to open if the storage does not answer for MS "
		"milliseconds (default: 30000; -1 waits for ever)."),
	NUMBER(bucket, U32, SCHEDULE, LIMITS(0, 0, BUCKET_BATCHES_MAX), "K",
		"Serve examples of similar length together: sort each block "
		"of K batches by length, and shuffle its batches."),
	REAL(max_damage, F64, NOT, LIMITS(0.1, 0, 1), "X",
		"Fail if more than this share of the fresh examples is "
		"damaged (default: 0.1)."),
	TEXT(share, NOT, "NAME",
		"Share batches with the jobs on this host that use the same "
		"NAME. Each example is then read and decoded once for all of "
		"them."),
	NUMBER(share_jobs, U32, NOT, LIMITS(0, 0, 64), "J",
		"Wait until J jobs have joined the share (default: start at "
		"once)."),
	NUMBER(share_batch, U32, NOT, LIMITS(0, 0, SCHEDULE_BATCH_MAX), "B",
		"Size of the shared batches if this job takes slices of them. "
		"Must be a multiple of its own batch size."),
	WORD(share_slow, REFRAIN_SHARE_SOLO, NOT, "wait|solo",
		"If this job is slower than the others of its share, make them "
		"wait (wait, the default), or prepare its own batches until it "
		"has caught up (solo)."),
	NUMBER(share_grace_s, U32, NOT, LIMITS(600, 0, 86400), "SECONDS",
		"Maximum time that the others wait for this job between epochs "
		"if its share_slow is solo (default: 600)."),
	TEXT(fields, HASHED(21), "FIELDS",
		"Fields of the examples besides the image and the class, as in "
		"'image; boxes max=50; mask'. Each becomes a column of the "
		"batch."),
	TEXT(annotations, DATASET, "FILE",
		"File of boxes and points in COCO's JSON, for fields without a "
		"member of their own."),
	NUMBER(epoch_examples, U64, SCHEDULE, LIMITS(0, 0, 0), "V",
		"Number of examples of an epoch, over all ranks (default: as "
		"many as the dataset has). Each pass over the dataset still "
		"serves every example once."),
	NUMBER(subset, U64, HASHED(22), LIMITS(0, 0, 0), "M",
		"Serve only M examples, drawn at random (default: all). A "
		"subset contains the smaller ones of its seed."),
	NUMBER(subset_seed, U64, HASHED(23), LIMITS(0, 0, 0), "S",
		"Seed that draws the subset (default: 0)."),
	TEXT(mix, HASHED(24), "MIX",
		"Serve parts of the dataset in fixed proportions, as in "
		"'web=9 books=1'."),

	TEXT(service, NOT, "BOARD[:PORT]",
		"Pull samples that workers on other hosts have prepared. They "
		"meet on the memcached at BOARD (default port: 11213)."),
	TEXT(service_dataset, NOT, "NAME",
		"Name under which the workers know the dataset."),
	WORD(service_local, REFRAIN_SERVICE_ALSO, NOT, "late|also",
		"With a service, make samples here if they would come too late "
		"(late, the default), or whenever a thread is idle (also)."),
	TEXT(service_secret, NOT, "FILE",
		"Pull only samples whose checksums depend on the content of "
		"FILE."),

	BIT("in_order", IN_ORDER, SCHEDULE, "Do not shuffle."),
	BIT("no_flip", NO_FLIP, HASHED(13), "Never mirror an image."),
	BIT("no_orient", NO_ORIENT, HASHED(13), "Ignore EXIF orientation."),
	BIT("pad_ranks", PAD_RANKS, SCHEDULE,
		"Give all ranks the same number of examples by repeating up "
		"to one example per rank."),
	BIT("allow_duplicates", ALLOW_DUPLICATES, SCHEDULE,
		"Accept a window so small that a batch can contain an example "
		"twice. Such duplicates are counted."),
	BIT("no_normalise", NO_NORMALISE, HASHED(13),
		"Scale f16 and f32 values to 0..1 and skip the normalisation "
		"by mean and std."),
	BIT("no_mount_help", NO_MOUNT_HELP, NOT,
		"On a refrain mount, read everything through the mount and do "
		"not send it a plan."),
	BIT("admit_planned", ADMIT_PLANNED, NOT,
		"Until all files of this run are in the cache of the refrain "
		"mount, let it admit only files that a plan names."),
	BIT("exact", EXACT, HASHED(13),
		"Decode every image at full size. By default, large images "
		"are decoded at 1/2, 1/4 or 1/8 for training."),
	BIT("equal_ranks", EQUAL_RANKS, SCHEDULE,
		"Give all ranks the same number of examples and batches by "
		"leaving out up to one example per rank."),

	{
		.name = "size",
		.type = REFRAIN_MEMBER_SIDES,
		.saved = SAVED_NOT,
		.arg = "N",
		.help = "Side of the images in a batch, or WxH (default: "
			"224).",
	},
};

#define ROWS (sizeof(table) / sizeof(*table))

const struct member *member_at(size_t n)
{
	return n < ROWS ? &table[n] : NULL;
}

static bool same_name(const char *name, const char *given)
{
	while (*name && *name == (*given == '-' ? '_' : *given)) {
		name++;
		given++;
	}
	return *name == *given;
}

const struct member *member_find(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (table[i].type != MEMBER_OTHER &&
			same_name(table[i].name, name))
			return &table[i];
	return NULL;
}

const struct member *member_of_hash(size_t n)
{
	for (size_t i = 0; i < ROWS; i++)
		if (table[i].saved == SAVED_HASHED((int)n) && !table[i].bit)
			return &table[i];
	return NULL;
}

static size_t number_bytes(const struct member *m)
{
	switch (m->kind) {
	case KIND_U32:
	case KIND_I32:
	case KIND_F32:
		return 4;
	case KIND_U64:
	case KIND_F64:
		return 8;
	case KIND_TEXT:
	case KIND_POINTER:
		break;
	}
	return 0;
}

uint32_t member_count(const struct member *m)
{
	size_t bytes = number_bytes(m);

	return bytes ? (uint32_t)(m->bytes / bytes) : 1;
}

uint32_t member_flags_known(void)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < ROWS; i++)
		bits |= table[i].bit;
	return bits;
}

uint32_t member_flags_hashed(void)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < ROWS; i++)
		if (table[i].saved >= SAVED_HASH)
			bits |= table[i].bit;
	return bits;
}

/* -- Defaults and limits --------------------------------------------------- */

static double number_get(
	const struct refrain_config *c, const struct member *m, uint32_t i)
{
	const void *at = (const char *)c + m->offset + i * number_bytes(m);

	switch (m->kind) {
	case KIND_U32:
		return *(const uint32_t *)at;
	case KIND_I32:
		return *(const int32_t *)at;
	case KIND_F32:
		return (double)*(const float *)at;
	case KIND_F64:
		return *(const double *)at;
	case KIND_U64:
	case KIND_TEXT:
	case KIND_POINTER:
		break;
	}
	return 0;
}

static void set_default(
	struct refrain_config *c, const struct member *m, uint32_t i)
{
	void *at = (char *)c + m->offset + i * number_bytes(m);

	if (m->kind == KIND_U32)
		*(uint32_t *)at = (uint32_t)m->fallback;
	else if (m->kind == KIND_I32)
		*(int32_t *)at = (int32_t)m->fallback;
	else if (m->kind == KIND_F32)
		*(float *)at = (float)m->fallback;
	else if (m->kind == KIND_F64)
		*(double *)at = m->fallback;
}

static bool has_limits(const struct member *m)
{
	return m->kind >= KIND_U32 && m->kind <= KIND_F64 &&
		m->kind != KIND_U64 && !m->bit;
}

/* Is the value within the limits? A number just beyond a limit is accepted,
 * because conversion to float may have rounded it. */
static bool is_within(const struct member *m, double value)
{
	double min = (double)(float)m->min, max = m->max;

	/* This is false for a NaN, because every comparison with a NaN is. */
	return value >= min - fabs(min) * 1e-9 - 1e-12 &&
		value <= max + fabs(max) * 1e-6;
}

static int number_check(const struct refrain_config *c, const struct member *m,
	uint32_t i, struct error *err)
{
	double value = number_get(c, m, i);
	char place[16] = "";

	if (is_within(m, value))
		return 0;
	if (member_count(m) > 1)
		/* Always fits */
		(void)snprintf(place, sizeof(place), "[%u]", i);
	if (m->kind != KIND_F32 && m->kind != KIND_F64)
		return error_set(err, -EINVAL,
			"%s%s is %.0f: it must be from %.0f to %.0f", m->name,
			place, value, m->min, m->max);
	return error_set(err, -EINVAL, "%s%s is %g: it must be from %g to %g",
		m->name, place, value, m->min, m->max);
}

int member_check(const struct refrain_config *c, const struct member *m,
	struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < member_count(m); i++)
		if (has_limits(m) && number_get(c, m, i) != 0.)
			rc = number_check(c, m, i, err);
	return rc;
}

int members_check(struct refrain_config *c, struct error *err)
{
	for (size_t n = 0; n < ROWS; n++) {
		const struct member *m = &table[n];

		for (uint32_t i = 0; has_limits(m) && i < member_count(m);
			i++) {
			int rc;

			if (number_get(c, m, i) == 0.)
				set_default(c, m, i);
			rc = number_check(c, m, i, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

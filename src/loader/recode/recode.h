/* SPDX-License-Identifier: MIT */
/*
 * Re-codes the JPEGs of a directory into another directory, as files of the
 * same names or as tar shards. The source is only read.
 *
 * Work is divided into *units*: a unit is one file of the target, made from one
 * or more files of the source. A thread makes one unit at a time. A unit is
 * written under another name and then renamed. The *record*, a hidden file in
 * the target, has a line for every unit that is safely on disk, with a hash of
 * the names, sizes and modification times of the unit's files. A run makes only
 * the units that the record lacks, so it may be killed at any time. When all
 * units are there, recode.json is written. Every file of the target depends
 * only on the source and the options.
 *
 * A file is copied byte for byte if it is not a JPEG, if it cannot be re-coded,
 * or if it would gain nothing: less than 5 % with loss; also less than 5 %
 * without loss in a file that is baseline already; a progressive file as
 * progressive.
 */
#ifndef RECODE_RECODE_H
#define RECODE_RECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/format/rendition.h"
#include "loader/image/transcode.h"

struct recode_options {
	const char *source, *target; /* directories */
	struct transcode_options form;
	bool again;	      /* re-code with loss what has lost before */
	uint64_t shard_bytes; /* bytes of the source per tar; 0: no tars */
	unsigned threads;     /* 0: one per processor */
	/* Called by the thread of recode_run(), several times a second. May be
	 * NULL. */
	void (*show)(void *arg, uint64_t files, uint64_t bytes,
		uint64_t total_bytes);
	void *arg;
};

/* Counts of files of the source, and their bytes. */
struct recode_counts {
	uint64_t recoded;
	uint64_t kept;	/* JPEGs that would gain nothing */
	uint64_t odd;	/* JPEGs that are damaged or cannot be re-coded */
	uint64_t other; /* files of other kinds */
	uint64_t bytes; /* bytes of the target's files */
};

/* The likeness of a sample of re-coded images to the originals. */
struct recode_sample {
	unsigned images; /* 0: not measured */
	/* Means, and the mean of the worst images, 1 of 100 but at least one */
	double psnr, psnr_worst, ssim, ssim_worst;
};

struct recode_result {
	struct recode_counts counts;
	struct recode_sample sample;  /* only with loss */
	uint64_t source_bytes, links; /* links: broken ones, left out */
	uint64_t made;		      /* units that this run has made */
	char rendition[RENDITION_MAX];
	char first_odd[512]; /* first file of `odd`, and why; or "" */
};

/*
 * Re-code. The target is created if it is missing. Otherwise it must be empty,
 * or have the record of an earlier run with the same options. Returns 0, or
 * -errno with a message; then another run continues. -EEXIST: the source has
 * lost before, and `again` is not set.
 */
int recode_run(const struct recode_options *o, struct recode_result *result,
	struct error *err);

/* -- Trials ---------------------------------------------------------------- */

#define TRIAL_ROWS 12u
#define TRIAL_PICTURES 3u

/* The effects of one form on a sample of a dataset's JPEGs. */
struct recode_trial {
	const char *name;    /* such as "quality 80" */
	const char *options; /* for recode or mount; "" for the originals */
	double bytes;	     /* share of the originals' bytes */
	/* CPU time to decode what a random resized crop needs, in us */
	double decode_us;
	/* The means, and the mean of the worst tenth */
	double psnr, psnr_worst, ssim;
	/* Sample pictures, as files */
	struct {
		uint8_t *data;
		size_t bytes;
	} picture[TRIAL_PICTURES];
};

struct recode_trials {
	uint64_t files, source_bytes; /* of the whole source */
	unsigned images;      /* in the sample: JPEGs that can be decoded */
	unsigned progressive; /* those that are progressive */
	struct recode_trial row[TRIAL_ROWS]; /* the first: the originals */
};

/*
 * Try all forms on up to `images` files, evenly spaced in the list of the
 * source. Nothing is written. `show` is as in struct recode_options, with the
 * files of the sample. Returns 0, or -errno with a message; -ENODATA: there is
 * no JPEG. Call recode_trials_release() after success.
 */
int recode_try(struct recode_trials *out, const char *source, unsigned images,
	void (*show)(void *arg, uint64_t files, uint64_t bytes,
		uint64_t total_bytes),
	void *arg, struct error *err);
void recode_trials_release(struct recode_trials *t);

#endif

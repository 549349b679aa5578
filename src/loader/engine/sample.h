/* SPDX-License-Identifier: MIT */
/*
 * Turns the encoded bytes of an example into a sample: chooses the part of an
 * image to decode, the scale, and the callbacks to use. The only inputs are
 * bytes, seeds and a configuration. No lock is held.
 *
 * The first decode covers everything that any serving of the example uses, even
 * servings that were over before a restart. So whether a damaged file is usable
 * does not depend on when it is decoded. Later decodes may cover less.
 */
#ifndef ENGINE_SAMPLE_H
#define ENGINE_SAMPLE_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "loader/image/image.h"
#include "loader/core/settings.h"

/* The tools with which one thread makes samples. */
struct sampler;

int sampler_new(struct sampler **out, const struct settings *s);
void sampler_free(struct sampler *p); /* NULL is allowed */
/* The memory that it holds permanently. */
uint64_t sampler_memory_bytes(const struct sampler *p);

/* The encoded bytes of an example; the first `skip` are a label. */
struct encoded {
	const uint8_t *data;
	size_t bytes; /* without the label */
	size_t skip;
	const char *name; /* for decode() */
	uint64_t index;	  /* likewise */
};

/* The seeds of the servings `first` to `end` - 1 of an example. */
struct seeds {
	uint32_t first, end;
	uint64_t (*of)(const void *ctx, uint32_t k);
	const void *ctx;
};

/* The known properties of an encoded image. All 0: nothing yet. */
struct picture {
	/* The user's decode() declined it: it is a JPEG for our decoder */
	bool declined;
	bool probed;
	bool verified; /* the regions of all its servings were decoded once */
	struct image_info info;
	struct rect region; /* of all servings */
	unsigned denom;	    /* likewise */
};

/* The region to decode, and the memory it takes. */
struct sample_layout {
	struct image image; /* jpeg */
	size_t bytes;
	uint64_t extra_bytes; /* memory that libjpeg takes during the decode */
};

/* A decoded example, in memory of the pool or of a worker. */
struct decoded {
	struct image image; /* of images; for jpeg: a region */
	uint8_t *data;	    /* the same memory */
	size_t bytes;
	uint32_t width, height, channels; /* 0: no image */
};

/* Is it decoded by our decoder? */
bool sample_is_jpeg(const struct settings *s, const struct picture *pic);

/* Check the header unless that was done before; `all` are the seeds of all
 * servings. Returns 0, or -errno with err set. */
int sample_probe(struct sampler *p, struct picture *pic,
	const struct encoded *in, const struct seeds *all, struct error *err);
/* Lay out the decode for the servings `some`, out of `all` that the example
 * has. */
void sample_layout(struct sampler *p, const struct picture *pic, uint32_t all,
	const struct seeds *some, struct sample_layout *out);
/* Decode into `room`, which has layout->bytes. Returns 0, -errno, or
 * REFRAIN_DECLINE. */
int sample_decode(struct sampler *p, const struct picture *pic,
	const struct encoded *in, struct sample_layout *layout, uint8_t *room,
	struct decoded *out, struct error *err);
/* Set the image of a decoded example that is not a JPEG from its width, height
 * and bytes. */
void sample_take_shape(struct decoded *d);

/* Make one sample. Returns 0 or -errno. */
int sample_augment(struct sampler *p, const struct picture *pic,
	const struct decoded *in, uint64_t seed, uint8_t *out);
/* Fill in which part of the image the sample shows. */
void sample_crop(const struct settings *s, const struct picture *pic,
	const struct decoded *in, uint64_t seed, struct refrain_crop *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Turns the encoded bytes of an example into a sample: chooses the part of an
 * image to decode, the scale, and the callbacks to call. The only inputs are
 * the bytes, the seeds and the configuration. No lock is held.
 *
 * The first decode covers everything that any serving of the example uses, even
 * servings that were over before a restart. So it does not depend on the time
 * of the decode whether a damaged file is usable. Later decodes may cover less.
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

/* The decoder and augmenter of one thread. */
struct sampler;

int sampler_new(struct sampler **out, const struct settings *s);
void sampler_free(struct sampler *p); /* NULL is allowed */
/* Returns the bytes of memory that a sampler holds between calls. */
uint64_t sampler_memory_bytes(const struct sampler *p);
/* Free the memory that a sampler has allocated since it was new. */
void sampler_trim(struct sampler *p);

/* Returns the limits for the decoders of a loader. */
struct decode_limits sample_limits(const struct settings *s);

/* The encoded bytes of an example. The first `skip` bytes of `data` are a
 * label. */
struct encoded {
	const uint8_t *data;
	size_t bytes; /* number of bytes without the label */
	size_t skip;
	const char *name; /* name of the example, for decode() */
	uint64_t index;	  /* number of the example, for decode() */
};

/* The seeds of the servings from `first` to `end` - 1 of an example. */
struct seeds {
	uint32_t first, end;
	uint64_t (*of)(const void *ctx, uint32_t k);
	const void *ctx;
};

/* Facts about an encoded image. They are unknown while all members are 0. */
struct picture {
	/* The user's decode() has declined the image, so the library decodes it
	 */
	bool declined;
	bool probed;
	bool verified; /* the regions of all servings were decoded once */
	struct image_info info;
	/* Boxes that crops depend on; valid while a serving is made */
	const struct box *boxes;
	uint32_t box_count;
	/* The array and the region of it that was read; valid while a serving
	 * is made. NULL: it is not an array */
	const struct volume *volume;
	/* The union for all servings; its width is 0 before
	 * sample_find_region() */
	struct rect region;
	unsigned denom; /* denominator of the scale for all servings */
};

/* The region to decode, and the memory that it needs. */
struct sample_layout {
	struct image image; /* only if the library decodes the image */
	/* in pixels of the image at full size; without pixels if decode()
	 * decodes the image, or there is none */
	struct rect region;
	size_t bytes;
	uint64_t extra_bytes;	  /* memory of the decoder during the decode */
	uint64_t new_extra_bytes; /* the same for a new decoder */
};

/* A decoded example, in memory of the pool or of a worker. */
struct decoded {
	struct image image; /* for images; may be a region of the whole image */
	uint8_t *data;	    /* the same memory as image.data */
	size_t bytes;
	uint32_t width, height, channels; /* 0: the example is not an image */
};

/* Does the library decode this image, not the user's decode()? */
bool sample_by_library(const struct settings *s, const struct picture *pic);

/* Check the header, unless it was checked before. Returns 0, or -errno with err
 * set. */
int sample_probe(struct sampler *p, struct picture *pic,
	const struct encoded *in, struct error *err);
/* Find the region for all servings, whose seeds are `all`, unless it is known.
 * The picture was probed, and has its boxes. */
void sample_find_region(
	struct sampler *p, struct picture *pic, const struct seeds *all);
/* Compute the layout of a decode for the servings `some`. The example has `all`
 * servings. */
void sample_layout(struct sampler *p, const struct picture *pic, uint32_t all,
	const struct seeds *some, struct sample_layout *out);
/* Decode into `room`, which has layout->bytes bytes. Returns 0, -errno, or
 * REFRAIN_DECLINE. */
int sample_decode(struct sampler *p, const struct picture *pic,
	const struct encoded *in, struct sample_layout *layout, uint8_t *room,
	struct decoded *out, struct error *err);
/* Set the image of a decoded example from its width, height and bytes. Used for
 * images that the library did not decode. */
void sample_take_shape(struct decoded *d);

/* Make one sample. Returns 0 or -errno. */
int sample_augment(struct sampler *p, const struct picture *pic,
	const struct decoded *in, uint64_t seed, uint8_t *out);
/* Make a sample from the u8 pixels that a worker has made from an image of this
 * size. `out` is in the type and layout of the settings. */
void sample_finish(struct sampler *p, const struct picture *pic, uint64_t seed,
	const uint8_t *pixels, uint8_t *out);
/* Fill in the part of the image that the sample shows. */
void sample_crop(const struct settings *s, const struct picture *pic,
	const struct decoded *in, uint64_t seed, struct refrain_crop *out);

#endif

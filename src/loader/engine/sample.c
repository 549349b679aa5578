/* SPDX-License-Identifier: MIT */
/*
 * Decodes and augments one example; see sample.h. Each sampler belongs to one
 * thread.
 */
#include "loader/engine/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sampler {
	const struct settings *s;
	struct decoder *decoder; /* NULL: the library decodes nothing */
	uint64_t decoder_bytes;	 /* set once: memory of a new decoder */
	struct augmenter *augmenter;
};

struct decode_limits sample_limits(const struct settings *s)
{
	return (struct decode_limits){
		.max_pixels = s->c.max_pixels,
		.max_memory_bytes = s->c.memory_bytes,
		.max_scans = 500,
		.ignore_orientation = s->c.flags & REFRAIN_FLAG_NO_ORIENT,
	};
}

int sampler_new(struct sampler **out, const struct settings *s)
{
	struct decode_limits limits = sample_limits(s);
	struct sampler *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	p->s = s;
	rc = augmenter_new(&p->augmenter, &s->augment);
	if (rc == 0 && (s->library_decodes || s->c.decode))
		rc = decoder_new(&p->decoder, &limits);
	if (rc < 0) {
		sampler_free(p);
		return rc;
	}
	if (p->decoder)
		p->decoder_bytes = decoder_memory_bytes(p->decoder);
	*out = p;
	return 0;
}

void sampler_free(struct sampler *p)
{
	if (!p)
		return;
	decoder_free(p->decoder);
	augmenter_free(p->augmenter);
	free(p);
}

uint64_t sampler_memory_bytes(const struct sampler *p)
{
	uint64_t held = augmenter_memory_bytes(p->augmenter);

	return p->decoder ? held + decoder_memory_bytes(p->decoder) : held;
}

void sampler_trim(struct sampler *p)
{
	augmenter_trim(p->augmenter);
	if (p->decoder)
		decoder_trim(p->decoder);
}

/* -- The region to decode -------------------------------------------------- */

bool sample_by_library(const struct settings *s, const struct picture *pic)
{
	return s->library_decodes || pic->declined;
}

/* Compute the crop of one serving. */
static void crop_of_serving(const struct settings *s, const struct picture *pic,
	const struct seeds *seeds, uint32_t k, struct crop *out)
{
	crop_by_boxes(&s->augment, seeds->of(seeds->ctx, k), pic->info.width,
		pic->info.height, pic->boxes, pic->box_count, out);
}

static void whole_image(struct picture *pic)
{
	pic->denom = 1;
	pic->region = (struct rect){0, 0, pic->info.width, pic->info.height};
}

static void find_union(
	const struct settings *s, struct picture *pic, const struct seeds *all)
{
	pic->region = (struct rect){0};
	pic->denom = 8;
	for (uint32_t k = all->first; k < all->end; k++) {
		struct crop crop;
		unsigned denom;

		crop_of_serving(s, pic, all, k, &crop);
		crop_union(&pic->region, &crop);
		denom = crop_denom(
			&s->augment, &crop, pic->info.width, pic->info.height);
		if (denom < pic->denom)
			pic->denom = denom;
	}
}

int sample_probe(struct sampler *p, struct picture *pic,
	const struct encoded *in, struct error *err)
{
	int rc;

	if (!sample_by_library(p->s, pic) || pic->probed)
		return 0;
	rc = decode_probe(p->decoder, in->data, in->bytes, &pic->info, err);
	if (rc < 0)
		return rc;
	pic->probed = true;
	return 0;
}

void sample_find_region(
	struct sampler *p, struct picture *pic, const struct seeds *all)
{
	if (!sample_by_library(p->s, pic) || pic->region.width)
		return;
	if (p->s->image_sample)
		find_union(p->s, pic, all);
	else
		whole_image(pic);
}

static struct rect region_of(const struct settings *s,
	const struct picture *pic, const struct seeds *some)
{
	struct rect region = {0};

	for (uint32_t k = some->first; k < some->end; k++) {
		struct crop crop;

		crop_of_serving(s, pic, some, k, &crop);
		crop_union(&region, &crop);
	}
	return region;
}

static uint64_t beyond(uint64_t bytes, uint64_t held)
{
	return bytes > held ? bytes - held : 0;
}

void sample_layout(struct sampler *p, const struct picture *pic, uint32_t all,
	const struct seeds *some, struct sample_layout *out)
{
	const struct settings *s = p->s;
	struct rect region = pic->region;

	out->extra_bytes = out->new_extra_bytes = 0;
	out->region = (struct rect){0};
	if (!sample_by_library(s, pic)) {
		out->bytes = s->plain ? 0 : s->c.decoded_max_bytes;
		return;
	}
	if (pic->verified && s->image_sample && all > 1)
		region = region_of(s, pic, some);
	out->region = region;
	out->bytes =
		decode_layout(&pic->info, &region, pic->denom, &out->image);
	out->extra_bytes = beyond(
		pic->info.memory_bytes, decoder_memory_bytes(p->decoder));
	out->new_extra_bytes = beyond(pic->info.memory_bytes, p->decoder_bytes);
}

/* -- Decoding -------------------------------------------------------------- */

/* Remove the padding between rows, because augment_fn() has no parameter for a
 * stride. */
static void close_rows(struct decoded *d)
{
	size_t row = (size_t)d->width * 3, stride = d->image.stride_bytes;

	for (uint32_t y = 1; stride != row && y < d->height; y++)
		memmove(d->data + y * row, d->data + y * stride, row);
	d->image.stride_bytes = row;
	d->bytes = row * d->height;
}

static int decode_image(struct sampler *p, const struct picture *pic,
	const struct encoded *in, struct sample_layout *layout,
	struct decoded *out, struct error *err)
{
	int rc;

	layout->image.data = out->data;
	out->image = layout->image;
	out->bytes = layout->bytes;
	out->width = layout->image.width;
	out->height = layout->image.height;
	out->channels = 3;
	rc = decode_region(
		p->decoder, in->data, in->bytes, &pic->info, &out->image, err);
	if (rc == 0 && p->s->c.augment_fn)
		close_rows(out);
	return rc;
}

void sample_take_shape(struct decoded *out)
{
	out->image = (struct image){
		.data = out->data,
		.stride_bytes = (size_t)out->width * 3,
		.width = out->width,
		.height = out->height,
		.full_width = out->width,
		.full_height = out->height,
		.denom = 1,
	};
}

static int decode_other(const struct refrain_config *c, const char *column,
	const struct encoded *encoded, struct decoded *out, struct error *err)
{
	struct refrain_encoded in = {
		.size = sizeof(in),
		.data = encoded->data + encoded->skip,
		.bytes = encoded->bytes,
		.path = encoded->name,
		.index = encoded->index,
		.field = column,
	};
	struct refrain_decoded d = {.size = sizeof(d), .data = out->data};
	int rc = c->decode(c->ctx, &in, &d);

	if (rc > 0)
		return REFRAIN_DECLINE;
	if (rc < 0)
		return error_set(err, rc, "decode() failed: %m");
	if (d.type != REFRAIN_U8 || d.ndim)
		return error_set(err, -EBADMSG,
			"decode() returned type %d and ndim %u: both must be 0",
			d.type, d.ndim);
	if (d.bytes > c->decoded_max_bytes)
		return error_set(err, -EBADMSG,
			"decode() returned %zu bytes: more than "
			"decoded_max_bytes",
			d.bytes);
	if (d.width && d.channels && d.bytes / d.width / d.channels < d.height)
		return error_set(err, -EBADMSG,
			"decode() returned %zu bytes: too few for %u x %u x %u",
			d.bytes, d.height, d.width, d.channels);
	out->bytes = d.bytes;
	out->width = d.width;
	out->height = d.height;
	out->channels = d.channels;
	sample_take_shape(out);
	return 0;
}

/* Check that samples can be made from this decoded example. Returns 0, or
 * -errno with err set. */
static int check_decoded(
	const struct settings *s, const struct decoded *in, struct error *err)
{
	if (s->c.augment_fn)
		return 0;
	if (s->image_sample && (!in->width || !in->height || in->channels != 3))
		return error_set(err, -EBADMSG,
			"it is not an image of 3 "
			"channels");
	if (settings_tokens(s) || settings_array(s))
		return 0;
	if (!s->image_sample && in->bytes != s->sample_bytes)
		return error_set(err, -EBADMSG,
			"it has %zu bytes, but a sample must have "
			"%zu",
			in->bytes, s->sample_bytes);
	return 0;
}

int sample_decode(struct sampler *p, const struct picture *pic,
	const struct encoded *in, struct sample_layout *layout, uint8_t *room,
	struct decoded *out, struct error *err)
{
	const struct settings *s = p->s;
	int rc;

	*out = (struct decoded){.data = room};
	if (s->plain) {
		/* The cast is safe, because a record is only copied from
		 * here. */
		out->data = (uint8_t *)(uintptr_t)in->data + in->skip;
		out->bytes = in->bytes;
		return check_decoded(s, out, err);
	}
	if (sample_by_library(s, pic))
		rc = decode_image(p, pic, in, layout, out, err);
	else
		rc = decode_other(&s->c, settings_samples(s), in, out, err);
	return rc ? rc : check_decoded(s, out, err);
}

/* -- Augmentation ---------------------------------------------------------- */

/* Compute the crop in the whole image, even if `in` is only a region of it. */
static void find_crop(const struct settings *s, const struct picture *pic,
	const struct decoded *in, uint64_t seed, struct crop *out)
{
	bool ours = sample_by_library(s, pic);

	crop_by_boxes(&s->augment, seed, ours ? pic->info.width : in->width,
		ours ? pic->info.height : in->height, pic->boxes,
		pic->box_count, out);
}

/* Copy n values of the type `from`, which may lie at any address, to i64 or i32
 * at `out`. */
#define WIDEN(from)                                                            \
	for (size_t i = 0; i < n; i++) {                                       \
		from v;                                                        \
                                                                               \
		memcpy(&v, in + i * sizeof(v), sizeof(v));                     \
		wide[i] = (int64_t)v;                                          \
	}                                                                      \
	break
#define NARROW(from)                                                           \
	for (size_t i = 0; i < n; i++) {                                       \
		from v;                                                        \
                                                                               \
		memcpy(&v, in + i * sizeof(v), sizeof(v));                     \
		narrow[i] = (int32_t)v;                                        \
	}                                                                      \
	break

static void to_i64(const uint8_t *in, size_t each, size_t n, int64_t *wide)
{
	switch (each) {
	case 1:
		WIDEN(uint8_t);
	case 2:
		WIDEN(uint16_t);
	case 4:
		WIDEN(int32_t);
	default:
		WIDEN(int64_t);
	}
}

static void to_i32(const uint8_t *in, size_t each, size_t n, int32_t *narrow)
{
	switch (each) {
	case 1:
		NARROW(uint8_t);
	case 2:
		NARROW(uint16_t);
	case 4:
		NARROW(int32_t);
	default:
		NARROW(int64_t);
	}
}

/* Convert tokens to the type of the field. The number of bytes that were read
 * says how long a token is in the file. */
static void convert_tokens(
	const struct token_windows *f, const struct decoded *in, void *out)
{
	size_t n = (size_t)f->length + f->overlap, each = in->bytes / n;

	if (f->type == REFRAIN_I64)
		to_i64(in->data, each, n, out);
	else
		to_i32(in->data, each, n, out);
}

static void cut_array(const struct settings *s, const struct volume *v,
	const struct decoded *in, uint64_t seed, uint8_t *out)
{
	const struct array_crops *how = settings_array(s);
	struct volume_crop crop;

	volume_crop(how, v, settings_volume_choice(s), seed, &crop);
	volume_cut(how, v, &crop, in->data, out);
}

int sample_augment(struct sampler *p, const struct picture *pic,
	const struct decoded *in, uint64_t seed, uint8_t *out)
{
	const struct settings *s = p->s;
	const struct token_windows *tokens = settings_tokens(s);
	struct crop crop;

	if (s->c.augment_fn) {
		struct refrain_decoded d = {
			.size = sizeof(d),
			.data = in->data,
			.bytes = in->bytes,
			.width = in->width,
			.height = in->height,
			.channels = in->channels,
		};

		return s->c.augment_fn(
			s->c.ctx, &d, seed, out, s->sample_bytes);
	}
	if (pic->volume) {
		cut_array(s, pic->volume, in, seed, out);
		return 0;
	}
	if (tokens) {
		convert_tokens(tokens, in, out);
		return 0;
	}
	if (!s->image_sample) {
		memcpy(out, in->data, s->sample_bytes);
		return 0;
	}
	find_crop(s, pic, in, seed, &crop);
	return augment(p->augmenter, &in->image, &crop, out);
}

void sample_finish(struct sampler *p, const struct picture *pic, uint64_t seed,
	const uint8_t *pixels, uint8_t *out)
{
	const struct decoded none = {.width = 0};
	struct crop crop;

	find_crop(p->s, pic, &none, seed, &crop);
	augment_finish(p->augmenter, &crop, pixels, out);
}

void sample_crop(const struct settings *s, const struct picture *pic,
	const struct decoded *in, uint64_t seed, struct refrain_crop *out)
{
	bool ours = sample_by_library(s, pic);
	struct crop crop;

	*out = (struct refrain_crop){0};
	if (!s->image_sample)
		return;
	find_crop(s, pic, in, seed, &crop);
	*out = (struct refrain_crop){
		.x = crop.x,
		.y = crop.y,
		.width = crop.width,
		.height = crop.height,
		.image_width = ours ? pic->info.width : in->width,
		.image_height = ours ? pic->info.height : in->height,
		.flip = crop.flip ? REFRAIN_FLIP_HORIZONTAL : 0,
	};
}

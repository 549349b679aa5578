/* SPDX-License-Identifier: MIT */
/*
 * Decoding and augmenting of one example: which part of an image, at which
 * scale, and which of the callbacks. No lock; the worker has the entry.
 *
 * What is decoded first is all that any serving of the example touches, also
 * those that are over (after a restart): whether a damaged file can be used
 * must not depend on when it is decoded. Later less will do.
 */
#include <errno.h>
#include <string.h>

#include "loader/make_impl.h"

bool make_is_jpeg(const struct refrain_loader *l, const struct entry *e)
{
	return l->s.jpeg || e->declined;
}

/* How many different crops the servings have. */
static uint32_t crops(const struct refrain_loader *l, const struct entry *e)
{
	return l->s.c.echo_point == REFRAIN_ECHO_BEFORE ? e->slot.servings : 1;
}

/* The slot's seed is that of one serving; this is that of any. */
static void crop_of_serving(const struct refrain_loader *l,
	const struct entry *e, uint32_t k, struct crop *out)
{
	uint64_t seed =
		schedule_augment_seed(&l->planner.schedule, &e->slot, k);

	crop_of(&l->s.augment, seed, e->info.width, e->info.height, out);
}

static void whole_image(struct entry *e)
{
	e->denom = 1;
	e->region = (struct rect){0, 0, e->info.width, e->info.height};
}

static void find_region(const struct refrain_loader *l, struct entry *e)
{
	e->region = (struct rect){0};
	e->denom = 8;
	for (uint32_t k = 0; k < crops(l, e); k++) {
		struct crop crop;
		unsigned denom;

		crop_of_serving(l, e, k, &crop);
		crop_union(&e->region, &crop);
		denom = crop_denom(
			&l->s.augment, &crop, e->info.width, e->info.height);
		if (denom < e->denom)
			e->denom = denom;
	}
}

int make_probe(struct make *m, struct error *err)
{
	const struct refrain_loader *l = m->w->l;
	struct entry *e = m->e;
	int rc;

	if (!make_is_jpeg(l, e) || e->probed)
		return 0;
	rc = decode_probe(m->w->decoder, e->encoded->data, e->encoded_bytes,
		&e->info, err);
	if (rc < 0)
		return rc;
	if (l->s.image_sample)
		find_region(l, e);
	else
		whole_image(e);
	e->probed = true;
	return 0;
}

void make_layout(struct make *m)
{
	const struct refrain_loader *l = m->w->l;
	struct entry *e = m->e;
	struct rect region = e->region;
	uint64_t held;

	if (!make_is_jpeg(l, e)) {
		m->decoded_bytes = l->s.plain ? 0 : l->s.c.decoded_max_bytes;
		m->extra_bytes = 0;
		return;
	}
	held = decoder_memory_bytes(m->w->decoder);
	if (e->verified && l->s.image_sample && crops(l, e) > 1) {
		uint32_t end = m->keep ? e->slot.servings : m->s->echo + 1;

		region = (struct rect){0};
		for (uint32_t k = m->keep ? e->low : m->s->echo; k < end; k++) {
			struct crop crop;

			crop_of_serving(l, e, k, &crop);
			crop_union(&region, &crop);
		}
	}
	m->decoded_bytes =
		decode_layout(&e->info, &region, e->denom, &m->layout);
	m->extra_bytes =
		e->info.memory_bytes > held ? e->info.memory_bytes - held : 0;
}

/* augment_fn() knows of no stride. */
static void close_rows(struct decoded *d)
{
	size_t row = (size_t)d->width * 3, stride = d->image.stride_bytes;

	for (uint32_t y = 1; stride != row && y < d->height; y++)
		memmove(d->data + y * row, d->data + y * stride, row);
	d->image.stride_bytes = row;
	d->bytes = row * d->height;
}

static int decode_jpeg(struct make *m, struct decoded *out, struct error *err)
{
	struct entry *e = m->e;
	int rc;

	m->layout.data = out->data;
	out->image = m->layout;
	out->bytes = m->decoded_bytes;
	out->width = m->layout.width;
	out->height = m->layout.height;
	out->channels = 3;
	rc = decode_region(m->w->decoder, e->encoded->data, e->encoded_bytes,
		&e->info, &out->image, err);
	if (rc == 0 && m->w->l->s.c.augment_fn)
		close_rows(out);
	return rc;
}

static void take_shape(struct decoded *out)
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

static int decode_other(struct make *m, struct decoded *out, struct error *err)
{
	const struct refrain_config *c = &m->w->l->s.c;
	struct entry *e = m->e;
	struct refrain_encoded in = {
		.data = e->encoded->data + e->skip,
		.bytes = e->encoded_bytes,
		.path = e->example.name,
		.index = e->index,
	};
	struct refrain_decoded d = {.data = out->data};
	int rc = c->decode(c->ctx, &in, &d);

	if (rc > 0)
		return REFRAIN_DECLINE;
	if (rc < 0)
		return error_set(err, rc, "decode() said: %m");
	if (d.bytes > c->decoded_max_bytes)
		return error_set(err, -EBADMSG,
			"decode() made %zu bytes: more than decoded_max_bytes",
			d.bytes);
	if (d.width && d.channels && d.bytes / d.width / d.channels < d.height)
		return error_set(err, -EBADMSG,
			"decode() made %zu bytes: too few for %u x %u x %u",
			d.bytes, d.height, d.width, d.channels);
	out->bytes = d.bytes;
	out->width = d.width;
	out->height = d.height;
	out->channels = d.channels;
	take_shape(out);
	return 0;
}

/* Is it what the samples are made of? */
static int check_decoded(const struct refrain_loader *l,
	const struct decoded *in, struct error *err)
{
	if (l->s.c.augment_fn)
		return 0;
	if (l->s.image_sample &&
		(!in->width || !in->height || in->channels != 3))
		return error_set(err, -EBADMSG, "it is no image of 3 channels");
	if (!l->s.image_sample && in->bytes != l->s.sample_bytes)
		return error_set(err, -EBADMSG,
			"it has %zu bytes, a sample has %zu", in->bytes,
			l->s.sample_bytes);
	return 0;
}

int make_decode(struct make *m, struct decoded *out, struct error *err)
{
	struct refrain_loader *l = m->w->l;
	int rc = 0;

	*out = (struct decoded){0};
	if (l->s.plain) {
		out->data = m->e->encoded->data + m->e->skip;
		out->bytes = m->e->encoded_bytes;
		return check_decoded(l, out, err);
	}
	out->data = m->keep ? m->keep->data : m->w->scratch->data;
	if (make_is_jpeg(l, m->e))
		rc = decode_jpeg(m, out, err);
	else
		rc = decode_other(m, out, err);
	return rc ? rc : check_decoded(l, out, err);
}

/* `in` may be a region of a JPEG. */
static void find_crop(const struct refrain_loader *l, const struct entry *e,
	const struct decoded *in, uint64_t seed, struct crop *out)
{
	bool jpeg = make_is_jpeg(l, e);

	crop_of(&l->s.augment, seed, jpeg ? e->info.width : in->width,
		jpeg ? e->info.height : in->height, out);
}

int make_sample(struct worker *w, const struct entry *e,
	const struct decoded *in, uint64_t seed, uint8_t *out)
{
	const struct settings *s = &w->l->s;
	struct crop crop;

	if (s->c.augment_fn) {
		struct refrain_decoded d = {
			.data = in->data,
			.bytes = in->bytes,
			.width = in->width,
			.height = in->height,
			.channels = in->channels,
		};

		return s->c.augment_fn(
			s->c.ctx, &d, seed, out, s->sample_bytes);
	}
	if (!s->image_sample) {
		memcpy(out, in->data, s->sample_bytes);
		return 0;
	}
	find_crop(w->l, e, in, seed, &crop);
	return augment(w->augmenter, &in->image, &crop, out);
}

void make_crop(const struct refrain_loader *l, const struct entry *e,
	const struct decoded *in, uint64_t seed, struct refrain_crop *out)
{
	bool jpeg = make_is_jpeg(l, e);
	struct crop crop;

	*out = (struct refrain_crop){0};
	if (!l->s.image_sample)
		return;
	find_crop(l, e, in, seed, &crop);
	*out = (struct refrain_crop){
		.x = crop.x,
		.y = crop.y,
		.width = crop.width,
		.height = crop.height,
		.image_width = jpeg ? e->info.width : in->width,
		.image_height = jpeg ? e->info.height : in->height,
		.flip = crop.flip,
	};
}

void make_kept(const struct refrain_loader *l, const struct entry *e,
	struct decoded *out)
{
	*out = (struct decoded){
		.data = e->kept->data + (l->s.plain ? e->skip : 0),
		.bytes = e->kept_bytes,
		.width = e->width,
		.height = e->height,
		.channels = e->channels,
	};
	if (make_is_jpeg(l, e))
		out->image = e->image;
	else
		take_shape(out);
}

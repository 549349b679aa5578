/* SPDX-License-Identifier: MIT */
/*
 * Transcodes by pixels: an image is decoded upright as it is stored, resized by
 * the loader's own filter, and encoded again. Called by the transcoder's
 * thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "loader/image/augment.h"
#include "loader/image/transcode_impl.h"
#include "refrain/loader.h"

/* An RGB image without gaps between its rows. */
struct picture_rows {
	struct transcoder *t;
	uint8_t *rgb;
	uint32_t width, height;
};

static int decode_whole(
	struct transcoder *t, const struct image_info *info, struct image *out)
{
	struct rect all = {0, 0, info->width, info->height};
	size_t bytes = decode_layout(info, &all, 1, out);
	int rc;

	out->data = malloc(bytes);
	if (!out->data)
		return error_set(t->read.err, -ENOMEM, "%m");
	rc = decode_region(
		t->pixels, t->source, t->source_bytes, info, out, t->read.err);
	return rc;
}

/* The result's size: the shorter side as wanted, the other in proportion. */
static void size_of_result(const struct transcoder *t,
	const struct image_info *info, struct picture_rows *p)
{
	uint32_t less = info->width < info->height ? info->width : info->height;
	uint64_t to = t->o.shorter;

	p->width = info->width;
	p->height = info->height;
	if (!to || less <= to)
		return;
	p->width = (uint32_t)((info->width * to + less / 2) / less);
	p->height = (uint32_t)((info->height * to + less / 2) / less);
}

/* Returns 0 or -ENOMEM. */
static int resize_pixels(struct picture_rows *p, const struct image *in)
{
	struct augment_config c = {
		.height = p->height,
		.width = p->width,
		.type = REFRAIN_U8,
		.layout = REFRAIN_NHWC,
		.augment = REFRAIN_AUGMENT_NONE,
		.scale = SCALE_EXACT,
	};
	struct augmenter *a;
	struct crop crop;
	int rc = augmenter_new(&a, &c);

	if (rc < 0)
		return rc;
	p->rgb = malloc(augment_sample_bytes(&c));
	crop_of(&c, 0, in->full_width, in->full_height, &crop);
	rc = p->rgb ? augment(a, in, &crop, p->rgb) : -ENOMEM;
	augmenter_free(a);
	return rc;
}

static void set_sampling(struct transcoder *t)
{
	for (int i = 0; i < t->cinfo.num_components; i++) {
		jpeg_component_info *to = &t->cinfo.comp_info[i];
		const jpeg_component_info *from = &t->read.cinfo.comp_info[i];

		to->h_samp_factor = from->h_samp_factor;
		to->v_samp_factor = from->v_samp_factor;
		if (t->o.sampling_420 && t->cinfo.num_components == 3)
			to->h_samp_factor = to->v_samp_factor = i ? 1 : 2;
	}
}

/* Called by decoder_guard() of t->read. */
static int encode_pixels(struct decoder *d, void *arg)
{
	struct picture_rows *p = arg;
	struct jpeg_compress_struct *out = &p->t->cinfo;

	transcode_create(p->t);
	out->image_width = p->width;
	out->image_height = p->height;
	out->input_components = 3;
	out->in_color_space = JCS_RGB;
	jpeg_set_defaults(out);
	jpeg_set_colorspace(
		out, d->cinfo.num_components == 1 ? JCS_GRAYSCALE : JCS_YCbCr);
	jpeg_set_quality(out, (int)p->t->o.quality, TRUE);
	set_sampling(p->t);
	transcode_set_scans(p->t);
	out->optimize_coding = TRUE;
	out->write_JFIF_header = d->cinfo.saw_JFIF_marker;
	out->density_unit = d->cinfo.density_unit;
	out->X_density = d->cinfo.X_density;
	out->Y_density = d->cinfo.Y_density;
	jpeg_start_compress(out, TRUE);
	transcode_markers(p->t);
	while (out->next_scanline < out->image_height) {
		JSAMPROW row =
			p->rgb + (size_t)out->next_scanline * p->width * 3;

		(void)jpeg_write_scanlines(out, &row, 1);
	}
	transcode_finish(p->t, NULL, 0);
	return 0;
}

int transcode_pixels(struct transcoder *t, const struct image_info *info)
{
	struct picture_rows p = {.t = t};
	struct image in = {0};
	int rc;

	if (info->components == 4)
		return error_set(t->read.err, -EMEDIUMTYPE,
			"a CMYK image, whose size and sampling cannot change");
	size_of_result(t, info, &p);
	rc = decode_whole(t, info, &in);
	if (rc == 0 && p.width == info->width && p.height == info->height)
		p.rgb = steal_ptr(&in.data);
	else if (rc == 0)
		rc = resize_pixels(&p, &in);
	if (rc == 0)
		rc = decoder_guard(&t->read, encode_pixels, &p);
	free(in.data);
	free(p.rgb);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * Transcodes without pixels: coefficients are read, rounded to coarser steps if
 * there is to be loss, written, read again and compared. Used by one thread at
 * a time.
 */
#include "loader/image/transcode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/transcode_impl.h"
#include <jerror.h>

/* The limits of the loader: a file above them is kept as it is. */
static const struct decode_limits transcode_limits = {
	.max_pixels = 200000000,
	.max_memory_bytes = UINT64_MAX,
	.max_scans = 500,
	.ignore_orientation = true, /* it stays a marker */
};

int transcoder_new(struct transcoder **out, const struct transcode_options *o)
{
	struct transcoder *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return -ENOMEM;
	t->o = *o;
	t->read.limits = t->check.limits = transcode_limits;
	t->read.keep_markers = true;
	return decoder_new(&t->pixels, &transcode_limits);
}

void transcoder_free(struct transcoder *t)
{
	if (!t)
		return;
	decoder_free(t->pixels);
	free(t->data);
	free(t);
}

#define NAME_OF(n) #n
#define TEXT_OF(n) NAME_OF(n)

const char *transcode_library(void)
{
#ifdef LIBJPEG_TURBO_VERSION
	return "libjpeg-turbo " TEXT_OF(LIBJPEG_TURBO_VERSION);
#else
	return "libjpeg " TEXT_OF(JPEG_LIB_VERSION);
#endif
}

bool transcode_is_jpeg(const void *data, size_t bytes)
{
	static const uint8_t begin[3] = {0xff, 0xd8, 0xff};

	return bytes >= sizeof(begin) &&
		memcmp(data, begin, sizeof(begin)) == 0;
}

/* -- Marks ----------------------------------------------------------------- */

/* Keep the text of the mark, if this is the mark of a pass with loss. */
static void take_mark(
	struct transcode_info *info, const struct jpeg_marker_struct *m)
{
	static const char begin[] = TRANSCODE_MARK_BEGIN "quality=";
	size_t skip = strlen(TRANSCODE_MARK_BEGIN);

	if (m->marker != JPEG_COM || m->data_length < strlen(begin) ||
		memcmp(m->data, begin, strlen(begin)) != 0 ||
		m->data_length - skip >= sizeof(info->lossy))
		return;
	memcpy(info->lossy, m->data + skip, m->data_length - skip);
	info->lossy[m->data_length - skip] = '\0';
}

int transcode_probe(struct transcoder *t, const void *data, size_t bytes,
	struct transcode_info *info, struct error *err)
{
	struct image_info image;
	int rc = decoder_open_image(&t->read, data, bytes, &image, err);

	*info = (struct transcode_info){0};
	if (rc == 0) {
		info->progressive = t->read.cinfo.progressive_mode;
		info->slow = info->progressive || t->read.cinfo.arith_code;
		for (const struct jpeg_marker_struct *m =
				t->read.cinfo.marker_list;
			m; m = m->next)
			take_mark(info, m);
	}
	decoder_close_image(&t->read);
	return rc;
}

/* -- Loss ------------------------------------------------------------------ */

static bool is_chroma(const struct jpeg_decompress_struct *cinfo, int c)
{
	return (cinfo->jpeg_color_space == JCS_YCbCr ||
		       cinfo->jpeg_color_space == JCS_YCCK) &&
		(c == 1 || c == 2);
}

/* Returns a rounded quotient; a half is rounded away from 0. */
static JCOEF requantise(int value, int from, int to)
{
	int exact = value * from;

	return (JCOEF)((exact < 0 ? exact - to / 2 : exact + to / 2) / to);
}

static void requantise_block(
	JCOEF *block, const UINT16 from[DCTSIZE2], const UINT16 to[DCTSIZE2])
{
	for (int k = 0; k < DCTSIZE2; k++)
		if (block[k] && from[k] != to[k])
			block[k] = requantise(block[k], from[k], to[k]);
}

static void requantise_component(struct transcoder *t, jvirt_barray_ptr array,
	const jpeg_component_info *c, const UINT16 to[DCTSIZE2])
{
	struct jpeg_decompress_struct *in = &t->read.cinfo;

	for (JDIMENSION y = 0; y < c->height_in_blocks; y++) {
		JBLOCKARRAY row = (*in->mem->access_virt_barray)(
			(j_common_ptr)in, array, y, 1, TRUE);

		for (JDIMENSION x = 0; x < c->width_in_blocks; x++)
			requantise_block(
				row[0][x], c->quant_table->quantval, to);
	}
}

/* Set the steps of a component of the result, in the first slot that is free or
 * has the same steps. */
static void set_steps(
	struct transcoder *t, int component, const UINT16 steps[DCTSIZE2])
{
	struct jpeg_compress_struct *out = &t->cinfo;
	int slot = 0;

	for (; slot < component; slot++)
		if (out->quant_tbl_ptrs[slot] &&
			memcmp(out->quant_tbl_ptrs[slot]->quantval, steps,
				sizeof(out->quant_tbl_ptrs[0]->quantval)) == 0)
			break;
	if (!out->quant_tbl_ptrs[slot])
		out->quant_tbl_ptrs[slot] =
			jpeg_alloc_quant_table((j_common_ptr)out);
	memcpy(out->quant_tbl_ptrs[slot]->quantval, steps,
		sizeof(out->quant_tbl_ptrs[0]->quantval));
	out->quant_tbl_ptrs[slot]->sent_table = FALSE;
	out->comp_info[component].quant_tbl_no = slot;
}

/* Round all coefficients to the steps of the quality. */
static void lose(struct transcoder *t, jvirt_barray_ptr *arrays)
{
	struct jpeg_decompress_struct *in = &t->read.cinfo;
	UINT16 of_quality[2][DCTSIZE2], steps[DCTSIZE2];

	jpeg_set_quality(&t->cinfo, (int)t->o.quality, TRUE);
	for (int i = 0; i < 2; i++)
		memcpy(of_quality[i], t->cinfo.quant_tbl_ptrs[i]->quantval,
			sizeof(of_quality[i]));
	for (int i = 0; i < in->num_components; i++) {
		const jpeg_component_info *c = &in->comp_info[i];
		const UINT16 *from;

		/* A component that no scan has coded has no table. */
		if (!c->quant_table)
			ERREXIT1(in, JERR_NO_QUANT_TABLE, c->quant_tbl_no);
		from = c->quant_table->quantval;
		for (int k = 0; k < DCTSIZE2; k++) {
			steps[k] = of_quality[is_chroma(in, i)][k];
			if (steps[k] < from[k])
				steps[k] = from[k];
		}
		requantise_component(t, arrays[i], c, steps);
		set_steps(t, i, steps);
	}
}

/* -- Comparison ------------------------------------------------------------ */

struct coefficient_comparison {
	struct transcoder *t;
	jvirt_barray_ptr *arrays; /* the coefficients that were written */
};

static bool rows_differ(struct coefficient_comparison *cmp,
	jvirt_barray_ptr theirs, int i, JDIMENSION y)
{
	struct jpeg_decompress_struct *in = &cmp->t->read.cinfo;
	struct jpeg_decompress_struct *back = &cmp->t->check.cinfo;
	const jpeg_component_info *c = &in->comp_info[i];
	JBLOCKARRAY one = (*in->mem->access_virt_barray)(
		(j_common_ptr)in, cmp->arrays[i], y, 1, FALSE);
	JBLOCKARRAY other = (*back->mem->access_virt_barray)(
		(j_common_ptr)back, theirs, y, 1, FALSE);

	return memcmp(one[0], other[0], c->width_in_blocks * sizeof(JBLOCK)) !=
		0;
}

static bool component_differs(
	struct coefficient_comparison *cmp, jvirt_barray_ptr theirs, int i)
{
	const jpeg_component_info *c = &cmp->t->read.cinfo.comp_info[i];
	const jpeg_component_info *b = &cmp->t->check.cinfo.comp_info[i];
	const jpeg_component_info *w = &cmp->t->cinfo.comp_info[i];

	if (b->width_in_blocks != c->width_in_blocks ||
		b->height_in_blocks != c->height_in_blocks ||
		b->h_samp_factor != c->h_samp_factor ||
		b->v_samp_factor != c->v_samp_factor ||
		memcmp(b->quant_table->quantval,
			cmp->t->cinfo.quant_tbl_ptrs[w->quant_tbl_no]->quantval,
			sizeof(b->quant_table->quantval)) != 0)
		return true;
	for (JDIMENSION y = 0; y < c->height_in_blocks; y++)
		if (rows_differ(cmp, theirs, i, y))
			return true;
	return false;
}

/* Read the result, and compare. Called by decoder_guard() of t->check. */
static int read_back(struct decoder *d, void *arg)
{
	struct coefficient_comparison *cmp = arg;
	const struct jpeg_decompress_struct *in = &cmp->t->read.cinfo;
	jvirt_barray_ptr *theirs = jpeg_read_coefficients(&d->cinfo);
	bool differs = in->image_width != d->cinfo.image_width ||
		in->image_height != d->cinfo.image_height ||
		in->num_components != d->cinfo.num_components ||
		in->jpeg_color_space != d->cinfo.jpeg_color_space;

	for (int i = 0; i < in->num_components && !differs; i++)
		differs = component_differs(cmp, theirs[i], i);
	return differs ? -EILSEQ : 0;
}

/* Returns 0, or -EILSEQ with a message. */
static int transcode_compare(struct transcoder *t, jvirt_barray_ptr *arrays)
{
	struct coefficient_comparison cmp = {t, arrays};
	struct error why = {""};
	struct image_info info;
	int rc = decoder_open_image(&t->check, t->data, t->bytes, &info, &why);

	if (rc == 0)
		rc = decoder_guard(&t->check, read_back, &cmp);
	decoder_close_image(&t->check);
	return rc == 0 ? 0
		       : error_set(t->read.err, -EILSEQ,
				 "the result differs from the source%s%s",
				 why.msg[0] ? ": " : "", why.msg);
}

/* -- Coefficients ---------------------------------------------------------- */

/* The library would add a JFIF or an Adobe marker by what it thinks of the
 * colours; readers choose the colours by these markers. */
static void keep_kind(struct transcoder *t)
{
	t->cinfo.write_JFIF_header = t->read.cinfo.saw_JFIF_marker;
	t->cinfo.write_Adobe_marker = t->read.cinfo.saw_Adobe_marker;
}

static void set_form(struct transcoder *t, jvirt_barray_ptr *arrays)
{
	jpeg_copy_critical_parameters(&t->read.cinfo, &t->cinfo);
	keep_kind(t);
	t->cinfo.optimize_coding = TRUE;
	transcode_set_scans(t);
	switch (t->o.form) {
	case TRANSCODE_BASELINE:
		break;
	case TRANSCODE_RESTART:
		t->cinfo.restart_interval = t->o.restart_mcus;
		t->cinfo.restart_in_rows = t->o.restart_mcus ? 0 : 1;
		break;
	case TRANSCODE_PROGRESSIVE:
		jpeg_simple_progression(&t->cinfo);
		break;
	case TRANSCODE_QUALITY:
		lose(t, arrays);
		break;
	}
}

/* Called by decoder_guard() of t->read. */
static int transcode_coefficients(struct decoder *d, void *arg)
{
	struct transcoder *t = arg;
	jvirt_barray_ptr *arrays = jpeg_read_coefficients(&d->cinfo);

	transcode_create(t);
	set_form(t, arrays);
	jpeg_write_coefficients(&t->cinfo, arrays);
	transcode_markers(t);
	transcode_finish(
		t, d->source.next_input_byte, d->source.bytes_in_buffer);
	return transcode_compare(t, arrays);
}

int transcode(struct transcoder *t, const void *data, size_t bytes,
	const char *mark, const uint8_t **out, size_t *out_bytes,
	struct error *err)
{
	struct image_info info;
	int rc;

	t->mark = mark;
	t->source = data;
	t->source_bytes = bytes;
	t->cinfo.mem = NULL;
	rc = decoder_open_image(&t->read, data, bytes, &info, err);
	if (rc == 0 && t->o.form == TRANSCODE_QUALITY &&
		(t->o.shorter || t->o.sampling_420))
		rc = transcode_pixels(t, &info);
	else if (rc == 0)
		rc = decoder_guard(&t->read, transcode_coefficients, t);
	jpeg_destroy_compress(&t->cinfo);
	decoder_close_image(&t->read);
	*out = t->data;
	*out_bytes = t->bytes;
	return rc;
}

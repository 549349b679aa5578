/* SPDX-License-Identifier: MIT */
/*
 * The callbacks of libjpeg: errors and warnings, input from memory, markers,
 * and the count of scans. After a failure, they leave libjpeg by longjmp() to
 * decoder_guard(), which returns the error. Nothing is printed. Called by the
 * decoder's thread.
 */
#include <errno.h>
#include <string.h>

#include "loader/image/decode_impl.h"

#include <jerror.h> /* must follow jpeglib.h, whose options it needs */

/* The longest marker that a file can contain, in bytes. */
#define MARKER_MAX 0xffff

static struct decoder *decoder_of(j_common_ptr cinfo)
{
	return cinfo->client_data;
}

int decoder_guard(
	struct decoder *d, int (*fn)(struct decoder *d, void *arg), void *arg)
{
	return setjmp(d->failed) == 0 ? fn(d, arg) : d->rc;
}

_Noreturn void decoder_fail(struct decoder *d, int rc)
{
	d->rc = rc;
	longjmp(d->failed, 1);
}

/* -- Errors ---------------------------------------------------------------- */

static int code_of(int message)
{
	switch (message) {
	case JERR_NO_SOI:
	case JERR_SOF_UNSUPPORTED:
	case JERR_BAD_PRECISION:
	case JERR_COMPONENT_COUNT:
	case JERR_CONVERSION_NOTIMPL:
	case JERR_CCIR601_NOTIMPL:
	case JERR_FRACT_SAMPLE_NOTIMPL:
	case JERR_ARITH_NOTIMPL:
	case JERR_NOT_COMPILED:
		return -EMEDIUMTYPE;
	case JERR_IMAGE_TOO_BIG:
	case JERR_WIDTH_OVERFLOW:
	case JERR_NO_BACKING_STORE: /* max_memory_to_use is exceeded */
		return -E2BIG;
	case JERR_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

static _Noreturn void fail_as_told(j_common_ptr cinfo)
{
	struct decoder *d = decoder_of(cinfo);
	char text[JMSG_LENGTH_MAX];
	int rc = code_of(cinfo->err->msg_code);

	if (cinfo->err->msg_code == JERR_OUT_OF_MEMORY)
		decoder_fail(d, error_set(d->err, rc, "%m"));
	(*cinfo->err->format_message)(cinfo, text);
	decoder_fail(d,
		error_set(d->err, rc, "%s%s", rc == -EBADMSG ? "damaged: " : "",
			text));
}

/*
 * After a warning, libjpeg continues with grey or random pixels in place of
 * missing data. The following warnings do not concern pixels, and other
 * programs show files that cause them:
 *
 *   ADOBE_XFORM     an unknown code of the colour transform; libjpeg uses the
 *                   most common one
 *   JFIF_MAJOR      an unknown version number
 *   NOT_SEQUENTIAL  wrong values in a field of the scan header that sequential
 *                   files do not use; some cameras write zeros
 *   EXTRANEOUS_DATA padding between segments, or after a scan. It is damage if
 *                   it occurs before a restart marker, because then the decoder
 *                   has lost its position within the restart interval
 *
 * All other warnings, including those of later versions, mean damage:
 * HIT_MARKER, HUFF_BAD_CODE, ARITH_BAD_CODE, MUST_RESYNC (pixels are made up),
 * BOGUS_PROGRESSION (a scan is missing or repeated), JPEG_EOF.
 */
static bool is_harmless(const struct jpeg_error_mgr *e)
{
	switch (e->msg_code) {
	case JWRN_ADOBE_XFORM:
	case JWRN_JFIF_MAJOR:
	case JWRN_NOT_SEQUENTIAL:
		return true;
	case JWRN_EXTRANEOUS_DATA:
		return e->msg_parm.i[1] < JPEG_RST0 ||
			e->msg_parm.i[1] > JPEG_RST0 + 7;
	default:
		return false;
	}
}

/* Handle a message of libjpeg. A negative level means a warning; other messages
 * are for debugging. */
static void take_message(j_common_ptr cinfo, int level)
{
	if (level < 0 && !is_harmless(cinfo->err))
		fail_as_told(cinfo);
}

static void print_nothing(j_common_ptr cinfo)
{
	(void)cinfo;
}

/* Limit the number of scans, because a file with many empty scans would take
 * minutes. libjpeg calls this for every row of every scan. */
static void count_scans(j_common_ptr cinfo)
{
	struct decoder *d = decoder_of(cinfo);
	int scan = d->cinfo.input_scan_number;

	if (scan > 0 && (unsigned)scan > d->limits.max_scans)
		decoder_fail(d,
			error_set(d->err, -E2BIG, "more than %u scans",
				d->limits.max_scans));
}

/* -- Input ----------------------------------------------------------------- */

static _Noreturn void fail_at_end(struct decoder *d)
{
	decoder_fail(d,
		error_set(
			d->err, -EBADMSG, "truncated: the data end too early"));
}

static void do_nothing(j_decompress_ptr cinfo)
{
	(void)cinfo;
}

/* Called when libjpeg needs more input. There is none, because all bytes were
 * there from the start, so the file is cut off. */
static boolean fill_input(j_decompress_ptr cinfo)
{
	fail_at_end(decoder_of((j_common_ptr)cinfo));
}

static void skip_input(j_decompress_ptr cinfo, long bytes)
{
	struct jpeg_source_mgr *s = cinfo->src;

	if (bytes <= 0)
		return;
	if ((size_t)bytes > s->bytes_in_buffer)
		fail_at_end(decoder_of((j_common_ptr)cinfo));
	s->next_input_byte += bytes;
	s->bytes_in_buffer -= (size_t)bytes;
}

/* Parse the marker in the input itself, because libjpeg's function would copy
 * it. */
static boolean take_app1(j_decompress_ptr cinfo)
{
	struct decoder *d = decoder_of((j_common_ptr)cinfo);
	const uint8_t *p = cinfo->src->next_input_byte;
	size_t bytes;

	if (cinfo->src->bytes_in_buffer < 2)
		fail_at_end(d);
	bytes = (size_t)p[0] << 8 | p[1];
	if (bytes < 2)
		decoder_fail(d,
			error_set(d->err, -EBADMSG,
				"damaged: a marker of %zu bytes", bytes));
	skip_input(cinfo, (long)bytes);
	if (!d->exif_seen && bytes >= 2 + 6 &&
		memcmp(p + 2, "Exif\0\0", 6) == 0) {
		d->exif_seen = true;
		d->orientation = exif_orientation(p + 2, bytes - 2);
	}
	return TRUE;
}

void decoder_create(struct decoder *d)
{
	d->cinfo.err = jpeg_std_error(&d->errors);
	d->cinfo.client_data = d;
	d->errors.error_exit = fail_as_told;
	d->errors.emit_message = take_message;
	d->errors.output_message = print_nothing;
	jpeg_create_decompress(&d->cinfo);
	d->progress.progress_monitor = count_scans;
	d->cinfo.progress = &d->progress;
	d->cinfo.src = &d->source;
	jpeg_set_marker_processor(&d->cinfo, JPEG_APP0 + 1, take_app1);
	if (!d->keep_markers)
		return;
	jpeg_save_markers(&d->cinfo, JPEG_COM, MARKER_MAX);
	for (int i = 0; i < 16; i++)
		jpeg_save_markers(&d->cinfo, JPEG_APP0 + i, MARKER_MAX);
}

void decoder_set_input(struct decoder *d, const void *data, size_t bytes)
{
	d->source.init_source = do_nothing;
	d->source.fill_input_buffer = fill_input;
	d->source.skip_input_data = skip_input;
	d->source.resync_to_restart = jpeg_resync_to_restart;
	d->source.term_source = do_nothing;
	d->source.next_input_byte = data;
	d->source.bytes_in_buffer = bytes;
	d->exif_seen = false;
	d->orientation = 0;
}

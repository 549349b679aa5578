/* SPDX-License-Identifier: MIT */
/*
 * The compressor of a transcoder: its output in memory, and the markers that it
 * copies. Called by the transcoder's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/transcode_impl.h"

/* The output grows by this at least, in bytes. */
#define GROW_BYTES ((size_t)256 << 10)

static struct transcoder *transcoder_of(j_compress_ptr cinfo)
{
	return (struct transcoder *)((char *)cinfo -
		offsetof(struct transcoder, cinfo));
}

static void ensure_room(struct transcoder *t, size_t more)
{
	size_t room = t->bytes + more;
	uint8_t *data;

	if (room <= t->room)
		return;
	if (room < 2 * t->room)
		room = 2 * t->room;
	data = realloc(t->data, room);
	if (!data)
		decoder_fail(&t->read, error_set(t->read.err, -ENOMEM, "%m"));
	t->data = data;
	t->room = room;
}

static void point_at_room(struct transcoder *t)
{
	ensure_room(t, GROW_BYTES);
	t->to.next_output_byte = t->data + t->bytes;
	t->to.free_in_buffer = t->room - t->bytes;
}

static void start_output(j_compress_ptr cinfo)
{
	struct transcoder *t = transcoder_of(cinfo);

	t->bytes = 0;
	point_at_room(t);
}

/* Called when the buffer is full. */
static boolean grow_output(j_compress_ptr cinfo)
{
	struct transcoder *t = transcoder_of(cinfo);

	t->bytes = t->room;
	point_at_room(t);
	return TRUE;
}

static void end_output(j_compress_ptr cinfo)
{
	struct transcoder *t = transcoder_of(cinfo);

	t->bytes = t->room - t->to.free_in_buffer;
}

void transcode_create(struct transcoder *t)
{
	t->cinfo.err = &t->read.errors;
	t->cinfo.client_data = &t->read;
	jpeg_create_compress(&t->cinfo);
	t->to.init_destination = start_output;
	t->to.empty_output_buffer = grow_output;
	t->to.term_destination = end_output;
	t->cinfo.dest = &t->to;
}

void transcode_set_scans(struct transcoder *t)
{
	static const jpeg_scan_info each[MAX_COMPS_IN_SCAN] = {
		{1, {0}, 0, 63, 0, 0},
		{1, {1}, 0, 63, 0, 0},
		{1, {2}, 0, 63, 0, 0},
		{1, {3}, 0, 63, 0, 0},
	};
	int blocks = 0;

	for (int i = 0; i < t->cinfo.num_components; i++)
		blocks += t->cinfo.comp_info[i].h_samp_factor *
			t->cinfo.comp_info[i].v_samp_factor;
	if (blocks <= C_MAX_BLOCKS_IN_MCU || t->cinfo.num_components == 1)
		return;
	t->cinfo.scan_info = each;
	t->cinfo.num_scans = t->cinfo.num_components;
}

/* JFIF and Adobe markers say how samples are stored, so the compressor writes
 * them. */
static bool is_written_by_library(const struct jpeg_marker_struct *m)
{
	if (m->marker == JPEG_APP0)
		return m->data_length >= 5 && memcmp(m->data, "JFIF", 5) == 0;
	return m->marker == JPEG_APP0 + 14 && m->data_length >= 5 &&
		memcmp(m->data, "Adobe", 5) == 0;
}

void transcode_markers(struct transcoder *t)
{
	char mark[TRANSCODE_MARK_MAX] = TRANSCODE_MARK_BEGIN;

	for (const struct jpeg_marker_struct *m = t->read.cinfo.marker_list; m;
		m = m->next)
		if (!is_written_by_library(m))
			jpeg_write_marker(
				&t->cinfo, m->marker, m->data, m->data_length);
	(void)strncat(mark, t->mark, sizeof(mark) - strlen(mark) - 1);
	jpeg_write_marker(&t->cinfo, JPEG_COM, (const JOCTET *)mark,
		(unsigned)strlen(mark));
}

void transcode_finish(struct transcoder *t, const uint8_t *tail, size_t bytes)
{
	jpeg_finish_compress(&t->cinfo);
	ensure_room(t, bytes);
	memcpy(t->data + t->bytes, tail, bytes);
	t->bytes += bytes;
}

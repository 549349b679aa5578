/* SPDX-License-Identifier: MIT */
/* Struct transcoder, and what its files call of each other. */
#ifndef IMAGE_TRANSCODE_IMPL_H
#define IMAGE_TRANSCODE_IMPL_H

#include "loader/image/decode_impl.h"
#include "loader/image/transcode.h"

struct transcoder {
	struct transcode_options o; /* set once */
	struct decoder read;	    /* reads the source */
	struct decoder check;	    /* reads the result */
	struct decoder *pixels;	    /* decodes pixels; NULL: not yet used */
	/* Writes the result. Its errors are those of `read`. */
	struct jpeg_compress_struct cinfo;
	struct jpeg_destination_mgr to;
	uint8_t *data; /* the result; only grows */
	size_t bytes, room;
	/* Used during one call: */
	const char *mark;
	const uint8_t *source;
	size_t source_bytes;
};

/* -- transcode_lib.c: the compressor --------------------------------------- */

/* Create the compressor, which writes into t->data. Call this, and what
 * follows, within decoder_guard() of t->read. */
void transcode_create(struct transcoder *t);

/* Choose the scans of a sequential file: one, or one for each component if
 * their blocks are too many for one. */
void transcode_set_scans(struct transcoder *t);

/* Write the markers of the source, except those that the library writes by
 * itself, and the mark. Call this after the start of the compressor. */
void transcode_markers(struct transcoder *t);

/* End the file, and append what follows the source's image at `tail`. */
void transcode_finish(struct transcoder *t, const uint8_t *tail, size_t bytes);

/* -- transcode_pixels.c ---------------------------------------------------- */

/* Decode, resize and encode. The header of t->read was read. Returns 0 or
 * -errno with a message in t->read.err. */
int transcode_pixels(struct transcoder *t, const struct image_info *info);

#endif

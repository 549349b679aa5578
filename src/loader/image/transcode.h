/* SPDX-License-Identifier: MIT */
/*
 * Writes a JPEG in another form: with the same coefficients, or with fewer bits
 * in them. A transcoder keeps its memory between files, and belongs to one
 * thread at a time. The bytes are not trusted. The result depends only on the
 * bytes and the options.
 *
 * The loss-free forms are BASELINE, RESTART and PROGRESSIVE. After writing, the
 * result is read again, and every coefficient and every quantisation step is
 * compared with the source's. QUALITY loses information. If size and sampling
 * stay, each coefficient is rounded to the steps that libjpeg uses for that
 * quality, without decoding to pixels; a step of the source that is coarser
 * already stays, so a coefficient is never rounded to finer steps. Otherwise
 * the pixels are decoded, resized and encoded.
 *
 * All markers of the source stay: EXIF, ICC, Adobe, comments, and, unless
 * pixels were decoded, the bytes after the image. A comment, the *mark*, is
 * added.
 */
#ifndef IMAGE_TRANSCODE_H
#define IMAGE_TRANSCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum transcode_form {
	/* sequential, with Huffman tables made for the file */
	TRANSCODE_BASELINE,
	TRANSCODE_RESTART, /* as BASELINE, with restart markers */
	/* libjpeg's ten scans */
	TRANSCODE_PROGRESSIVE,
	TRANSCODE_QUALITY, /* as BASELINE, with loss */
};

struct transcode_options {
	enum transcode_form form;
	unsigned restart_mcus; /* RESTART: MCUs per interval; 0: a row */
	/* For QUALITY: */
	unsigned quality; /* 1 to 100, as libjpeg has it */
	/* Shrink images until the shorter side has this many pixels, unless it
	 * has fewer already; 0: keep the size */
	unsigned shorter;
	bool sampling_420; /* halve the chroma; otherwise as in the source */
};

#define TRANSCODE_MARK_BEGIN "refrain recode 1 "
/* Maximum length of the text of a mark, with its NUL. */
#define TRANSCODE_MARK_MAX 128

/* Information from a JPEG's markers. */
struct transcode_info {
	bool progressive;
	bool slow; /* decoding is slow: progressive, or arithmetic coding */
	/* Text of the mark of the last pass with loss; "" if there was none */
	char lossy[TRANSCODE_MARK_MAX];
};

struct transcoder;

/* Returns 0 or -ENOMEM. */
int transcoder_new(struct transcoder **out, const struct transcode_options *o);
void transcoder_free(struct transcoder *t); /* NULL is allowed */

/* Do the first bytes look like a JPEG? */
bool transcode_is_jpeg(const void *data, size_t bytes);

/*
 * Read what the markers say, without decoding the image. Returns 0, or an error
 * as decode_probe() does.
 */
int transcode_probe(struct transcoder *t, const void *data, size_t bytes,
	struct transcode_info *info, struct error *err);

/*
 * Transcode a file. `mark` follows TRANSCODE_MARK_BEGIN in the mark, and is
 * shorter than TRANSCODE_MARK_MAX with it. *out is valid until the next call.
 * Returns 0; -EILSEQ if the comparison found a difference; an error as
 * decode_region() does; or -EMEDIUMTYPE for a form that the file cannot have,
 * such as another size of a CMYK image. err says why.
 */
int transcode(struct transcoder *t, const void *data, size_t bytes,
	const char *mark, const uint8_t **out, size_t *out_bytes,
	struct error *err);

/* Returns the name and version of the JPEG library. */
const char *transcode_library(void);

#endif

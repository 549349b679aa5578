/* SPDX-License-Identifier: MIT */
/*
 * Measures how alike two images are, in the way a trainer would see them: both
 * are resized and cut to the same centre, 224 x 224, as in an evaluation
 * (augment.h), and compared there. The values rank settings; they do not tell
 * the accuracy of a training. A meter belongs to one thread at a time.
 */
#ifndef IMAGE_LIKENESS_H
#define IMAGE_LIKENESS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Side of the compared image in pixels. */
#define LIKENESS_SIDE 224u
#define LIKENESS_BYTES ((size_t)LIKENESS_SIDE * LIKENESS_SIDE * 3)
/* PSNR of equal images, which have none. */
#define LIKENESS_PSNR_MAX 60.0

struct likeness {
	double psnr; /* over all RGB values, in dB; at most the limit above */
	double ssim; /* mean over windows of 8 x 8 luma values, 4 apart */
};

struct likeness_meter;

/* Returns 0 or -ENOMEM. */
int likeness_meter_new(struct likeness_meter **out);
void likeness_meter_free(struct likeness_meter *m); /* NULL is allowed */

/* Compare two images of LIKENESS_BYTES, RGB row by row. */
struct likeness likeness_of(const uint8_t *a, const uint8_t *b);

/* Compare two files. Returns 0 or an error as decode_region() does. */
int likeness_of_files(struct likeness_meter *m, const void *a, size_t a_bytes,
	const void *b, size_t b_bytes, struct likeness *out, struct error *err);

#endif

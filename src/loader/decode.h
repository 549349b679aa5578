/* SPDX-License-Identifier: MIT */
/*
 * JPEG decoding, limited to a region: the only user of libjpeg-turbo in the
 * library. Bytes come from outside: everything is checked before anything is
 * allocated, a bad file gives -errno and a message, never a crash, a hang or
 * output. A decoder belongs to one thread at a time.
 */
#ifndef LOADER_DECODE_H
#define LOADER_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loader/image.h"

struct decoder;

struct decode_limits {
	uint64_t max_pixels;	   /* of an image */
	uint64_t max_memory_bytes; /* that libjpeg may take for one image */
	unsigned max_scans;	   /* of a progressive one */
	bool ignore_orientation;
};

/* What a header says; checked. */
struct image_info {
	uint32_t width, height; /* upright */
	uint8_t orientation;	/* EXIF, 1 to 8; 1 if there is none */
	bool progressive;
	uint8_t components; /* 1, 3 or 4 */
};

/* -ENOMEM. */
int decoder_new(struct decoder **out, const struct decode_limits *limits);
void decoder_free(struct decoder *d);

/*
 * Read the header. 0, or
 *	-EMEDIUMTYPE	no JPEG (empty, HTML, another kind), or one of a kind
 *			that is not decoded (12 bits, lossless, arithmetic if
 *			the library lacks it)
 *	-EBADMSG	damaged, or too short for what its header claims
 *	-E2BIG		over a limit
 * with a message that says what is wrong, the path not included.
 */
int decode_probe(struct decoder *d, const void *data, size_t bytes,
	struct image_info *info, struct error *err);

/*
 * How the smallest image that holds `region` at 1/denom would look: fills all
 * of *out but `data` (with the margin that decoding needs, if any) and returns
 * the bytes that data must have. denom is 1, 2, 4 or 8.
 */
size_t decode_layout(const struct image_info *info, const struct rect *region,
	unsigned denom, struct image *out);

/*
 * Decode into out->data, as decode_layout() laid it out. Pixels of `region`
 * (outward to whole scaled pixels) are those of a full decode at the same
 * scale and upsampling, bit for bit; around them there may be a margin of
 * anything. Grey, CMYK and YCCK become RGB. A file that ends early or is
 * corrupt inside the rows that are needed is -EBADMSG, as above.
 */
int decode_region(struct decoder *d, const void *data, size_t bytes,
	const struct image_info *info, struct image *out, struct error *err);

/* The bytes that libjpeg and we hold for this decoder now. */
size_t decoder_memory_bytes(const struct decoder *d);

#endif

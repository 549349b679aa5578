/* SPDX-License-Identifier: MIT */
/*
 * libspng. It is opened with dlopen() for the first PNG of a decoder, so that
 * users who have only JPEGs do not need it. These declarations are those of its
 * ABI 0 (spng.h of version 0.7), so that a build does not need the header.
 * tests/unit/test_png.c compares them with the header if it is installed.
 */
#ifndef IMAGE_PNG_LIB_IMPL_H
#define IMAGE_PNG_LIB_IMPL_H

#include <stddef.h>

#include "common/base/err.h"

#define PNG_LIB_FILE "libspng.so.0"

/* Values of enums in spng.h. */
#define PNG_LIB_EMEM 2	  /* SPNG_EMEM */
#define PNG_LIB_EOI 75	  /* SPNG_EOI: this was the last row */
#define PNG_LIB_IO_EOF -1 /* SPNG_IO_EOF, returned by a read function */
#define PNG_LIB_RAW 512	  /* SPNG_FMT_RAW: samples as they are stored */
#define PNG_LIB_ROWS 256  /* SPNG_DECODE_PROGRESSIVE */
#define PNG_LIB_NO_CRC 2  /* SPNG_CRC_USE: check neither CRC nor Adler-32 */

struct spng_ctx;

typedef int png_lib_read_fn(
	struct spng_ctx *ctx, void *user, void *to, size_t bytes);

struct png_lib {
	void *handle;
	struct spng_ctx *(*ctx_new)(int flags);
	void (*ctx_free)(struct spng_ctx *ctx);
	int (*set_png_stream)(
		struct spng_ctx *ctx, png_lib_read_fn *fn, void *user);
	int (*set_crc_action)(struct spng_ctx *ctx, int critical, int other);
	int (*decode_image)(struct spng_ctx *ctx, void *out, size_t bytes,
		int format, int flags);
	int (*decode_scanline)(struct spng_ctx *ctx, void *out, size_t bytes);
	const char *(*strerror)(int error);
};

/* Returns 0, or -ELIBACC if the library cannot be loaded or lacks a
 * function. */
int png_lib_open(struct png_lib *lib, struct error *err);
void png_lib_close(struct png_lib *lib);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * libspng, opened with dlopen() by the first PNG of a decoder, so that those
 * who have only JPEGs need no libspng. These declarations are those of its ABI
 * 0 (spng.h of 0.7), which a build needs not have; tests/unit/test_png.c
 * compares them with the header where there is one.
 */
#ifndef IMAGE_PNG_LIB_IMPL_H
#define IMAGE_PNG_LIB_IMPL_H

#include <stddef.h>

#include "common/base/err.h"

#define PNG_LIB_FILE "libspng.so.0"

/* Values of its enums. */
#define PNG_LIB_EMEM 2	  /* SPNG_EMEM */
#define PNG_LIB_EOI 75	  /* SPNG_EOI: that was the last row */
#define PNG_LIB_IO_EOF -1 /* SPNG_IO_EOF, of a read function */
#define PNG_LIB_RAW 512	  /* SPNG_FMT_RAW: samples as in the file */
#define PNG_LIB_ROWS 256  /* SPNG_DECODE_PROGRESSIVE */
#define PNG_LIB_NO_CRC 2  /* SPNG_CRC_USE: neither CRC nor Adler-32 */

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

/* -ELIBACC if it cannot be loaded, or lacks a function. */
int png_lib_open(struct png_lib *lib, struct error *err);
void png_lib_close(struct png_lib *lib);

#endif

/* SPDX-License-Identifier: MIT */
/* Parses the header of an array in NumPy's format .npy, versions 1 to 3. The
 * bytes are not trusted. Pure functions; any thread. */
#ifndef DATASET_NPY_H
#define DATASET_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define NPY_DIMS_MAX 6
/* The bytes at the beginning of a file that npy_header_bytes() needs. */
#define NPY_START_BYTES 12
#define NPY_HEADER_MAX ((size_t)64 << 10)

struct npy {
	char kind; /* as in NumPy: 'u', 'i', 'f', or 'b' for bool */
	uint32_t value_bytes;
	uint32_t ndim;
	uint64_t shape[NPY_DIMS_MAX];
	uint64_t bytes; /* of all values */
	uint64_t at;	/* offset of the first value in the file */
};

/* Returns the size of the header of a file that begins with `data`, or 0 if it
 * is not the beginning of an array, or if the header is longer than
 * NPY_HEADER_MAX. */
size_t npy_header_bytes(const void *data, size_t bytes);

/*
 * Parse a header. `data` has at least npy_header_bytes() bytes. Only arrays in
 * C order, of little-endian whole or real numbers, are accepted. Returns 0, or
 * -EBADMSG with a message.
 */
int npy_parse(
	struct npy *out, const void *data, size_t bytes, struct error *err);

#endif

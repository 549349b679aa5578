/* SPDX-License-Identifier: MIT */
/* Fuzz target: the header of a .npy. Each input must give either a message, or
 * an array whose size is consistent. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "loader/dataset/npy.h"

static void npy_one(const uint8_t *data, size_t size)
{
	struct error err = {""};
	uint64_t bytes;
	struct npy npy;
	int rc = npy_parse(&npy, data, size, &err);

	FUZZ_MUST(rc == 0 || (rc == -EBADMSG && *err.msg));
	if (rc < 0)
		return;
	FUZZ_MUST(npy.at == npy_header_bytes(data, size) && npy.at <= size);
	FUZZ_MUST(npy.ndim <= NPY_DIMS_MAX);
	FUZZ_MUST(npy.value_bytes >= 1 && npy.value_bytes <= 8);
	bytes = npy.value_bytes;
	for (uint32_t i = 0; i < npy.ndim; i++)
		FUZZ_MUST(!__builtin_mul_overflow(bytes, npy.shape[i], &bytes));
	FUZZ_MUST(bytes == npy.bytes);
}

static size_t npy_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"{'descr': '<u2', 'fortran_order': False, 'shape': (5000,), }",
		"{\"shape\": (3, 4, 5), \"fortran_order\": False, 'descr': "
		"'|u1'}\n",
		"{'descr': '<f8', 'fortran_order': True, 'shape': (), }",
		"{'descr': '<f4', 'fortran_order': False, 'shape': "
		"(4294967296, 4294967296, 0), }",
		NULL};
	size_t n = fuzz_seed_text(texts, i / 2, buf + 12);
	bool second = i % 2;

	if (n == 0)
		return 0;
	/* Version 1 has a length of 2 bytes, and 2 and 3 have one of 4 */
	if (!second)
		memmove(buf + 10, buf + 12, n);
	memcpy(buf, "\x93NUMPY\1\0", 8);
	buf[6] = second ? 2 : 1;
	buf[8] = (uint8_t)n;
	buf[9] = (uint8_t)(n >> 8);
	if (second)
		buf[10] = buf[11] = 0;
	return n + (second ? 12 : 10);
}

const struct fuzz_target fuzz_npy = {"npy", npy_one, npy_seed};

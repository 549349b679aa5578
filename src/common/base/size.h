/* SPDX-License-Identifier: MIT */
/* Parses SIZE arguments (4096, 64K, 1.5G, 10%), and writes sizes for people to
 * read. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Parse a number with an optional suffix K, M, G or T (powers of 1024), or "N%"
 * of `whole_bytes` (0: percentages are refused). Returns 0, -EINVAL for an
 * invalid text, or -ERANGE for a size that exceeds 64 bits. */
int size_parse(const char *text, uint64_t whole_bytes, uint64_t *bytes,
	struct error *err);

#define SIZE_TEXT_MAX 32

/* Write a size such as "1.5 GiB" into buf; returns buf. */
const char *size_format(uint64_t bytes, char buf[SIZE_TEXT_MAX]);

#endif

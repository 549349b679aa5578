/* SPDX-License-Identifier: MIT */
/* The lengths of a dataset's examples, and the buckets made of them. */
#ifndef ENGINE_BUCKET_H
#define ENGINE_BUCKET_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/schedule/bucket.h"
#include "loader/core/settings.h"

struct dataset;

/*
 * Create the buckets of the settings. The length of an example is the size in
 * bytes of the member of its first field of text, tokens, audio or an array, or
 * else of its file. Sizes that the dataset does not know are looked up by many
 * threads; a file that cannot be looked up has length 0. *lengths belongs to
 * the caller, who frees it after the buckets. Returns 0, -E2BIG if the dataset
 * is too large, -EINVAL, -EAGAIN or -ENOMEM.
 */
int bucket_new(const struct settings *s, const struct dataset *dataset,
	uint32_t **lengths, struct buckets **out, struct error *err);

#endif

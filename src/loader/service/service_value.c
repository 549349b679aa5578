/* SPDX-License-Identifier: MIT */
/* The value of a sample in a store; see service_value.h. */
#include "loader/service/service_value.h"

#include <endian.h>
#include <string.h>

#include "common/base/hash.h"

#define SUM_AT (SAMPLE_HEAD_BYTES - sizeof(uint64_t))
#define HAS_LABEL 1u

static const char sample_magic[4] = {'R', 'F', 'S', '1'};

/* The head without the checksum; little-endian. */
struct sample_head {
	char magic[4];
	uint32_t bytes;
	uint64_t maker;
	uint32_t width, height;
	uint64_t label;
	uint32_t flags, zero;
};

_Static_assert(sizeof(struct sample_head) == SUM_AT, "no padding");

uint64_t sample_seed(const void *secret, size_t secret_bytes)
{
	return hash64(secret, secret_bytes, 0);
}

static uint64_t sample_sum(const void *head, uint64_t seed, const char *key,
	const void *pixels, uint32_t bytes)
{
	uint64_t sum = hash64(key, strlen(key), seed);

	return hash64(pixels, bytes, hash64(head, SUM_AT, sum));
}

void sample_seal(uint8_t head[SAMPLE_HEAD_BYTES], uint64_t seed,
	const char *key, const struct sample_value *v, const void *pixels)
{
	struct sample_head h = {
		.bytes = htole32(v->bytes),
		.maker = htole64(v->maker),
		.width = htole32(v->width),
		.height = htole32(v->height),
		.label = htole64((uint64_t)v->label),
		.flags = htole32(v->has_label ? HAS_LABEL : 0),
	};
	uint64_t sum;

	memcpy(h.magic, sample_magic, sizeof(h.magic));
	memcpy(head, &h, sizeof(h));
	sum = htole64(sample_sum(head, seed, key, pixels, v->bytes));
	memcpy(head + SUM_AT, &sum, sizeof(sum));
}

const uint8_t *sample_unseal(const void *value, size_t value_bytes,
	uint64_t seed, const char *key, struct sample_value *out)
{
	const uint8_t *head = value, *pixels = head + SAMPLE_HEAD_BYTES;
	struct sample_head h;
	uint64_t sum;

	if (value_bytes < SAMPLE_HEAD_BYTES)
		return NULL;
	memcpy(&h, head, sizeof(h));
	memcpy(&sum, head + SUM_AT, sizeof(sum));
	*out = (struct sample_value){
		.maker = le64toh(h.maker),
		.width = le32toh(h.width),
		.height = le32toh(h.height),
		.has_label = le32toh(h.flags) == HAS_LABEL,
		.label = (int64_t)le64toh(h.label),
		.bytes = le32toh(h.bytes),
	};
	if (memcmp(h.magic, sample_magic, sizeof(h.magic)) != 0 ||
		out->bytes != value_bytes - SAMPLE_HEAD_BYTES ||
		le32toh(h.flags) > HAS_LABEL || h.zero != 0)
		return NULL;
	return le64toh(sum) == sample_sum(head, seed, key, pixels, out->bytes)
		? pixels
		: NULL;
}

/* SPDX-License-Identifier: MIT */
/* The names of samples and ranges, and the keys of states. */
#include "loader/service/service_names.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>

#define HEX_128 33u /* digits of a hash128, and a NUL */

static const char *hex_of(char digits[HEX_128], struct hash128 h)
{
	*hash128_put(digits, h) = 0;
	return digits;
}

size_t service_sample_key(char key[SERVICE_KEY_MAX], struct hash128 job,
	const struct sample_name *name, uint32_t k)
{
	char digits[HEX_128];

	/* Global numbers are below 2^56, and factors at most 64. */
	return (size_t)snprintf(key, SERVICE_KEY_MAX,
		"rs1:%s:%014" PRIx64 ".%014" PRIx64 ".%02x.%02x",
		hex_of(digits, job), name->pass & UINT64_C(0xffffffffffffff),
		name->index & UINT64_C(0xffffffffffffff), k & 0xff,
		name->servings & 0xff);
}

uint32_t range_examples(uint32_t servings_max)
{
	uint32_t n = RANGE_EXAMPLES_MAX;

	while (n > 1 && n * servings_max > RANGE_SAMPLES_MAX)
		n /= 2;
	return n;
}

struct hash128 range_name(const struct sample_name *name, uint32_t count)
{
	uint64_t words[3 * RANGE_EXAMPLES_MAX];
	uint32_t n = count < RANGE_EXAMPLES_MAX ? count : RANGE_EXAMPLES_MAX;

	for (uint32_t i = 0; i < n; i++) {
		words[3 * i] = htole64(name[i].pass);
		words[3 * i + 1] = htole64(name[i].index);
		words[3 * i + 2] = htole64(name[i].servings);
	}
	return hash128(words, 3 * n * sizeof(words[0]));
}

size_t service_range_key(
	char key[SERVICE_KEY_MAX], struct hash128 job, struct hash128 range)
{
	char digits[HEX_128], of_range[HEX_128];

	return (size_t)snprintf(key, SERVICE_KEY_MAX, "rs1:%s:r:%s",
		hex_of(digits, job), hex_of(of_range, range));
}

size_t service_job_key(
	char key[SERVICE_KEY_MAX], struct hash128 job, const char *what)
{
	char digits[HEX_128];

	return (size_t)snprintf(
		key, SERVICE_KEY_MAX, "rs1:%s:%s", hex_of(digits, job), what);
}

size_t service_reader_key(
	char key[SERVICE_KEY_MAX], struct hash128 job, const char *id)
{
	char digits[HEX_128];

	return (size_t)snprintf(key, SERVICE_KEY_MAX, "rs1:%s:i:%.*s",
		hex_of(digits, job), (int)SERVICE_ID_MAX, id);
}

size_t service_worker_key(char key[SERVICE_KEY_MAX], const char *id)
{
	return (size_t)snprintf(
		key, SERVICE_KEY_MAX, "rs1:w:%.*s", (int)SERVICE_ID_MAX, id);
}

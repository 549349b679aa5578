/* SPDX-License-Identifier: MIT */
/*
 * The names of samples and ranges in the preparation service, and the keys of
 * its states; doc/formats.md describes them. The pixels of a sample are a
 * function of its job (configuration, dataset, seed), the pass, the example
 * and the echo number. So two processes that compute the same name make the
 * same bytes, even if they do not know of each other. Pure functions.
 */
#ifndef SERVICE_NAMES_H
#define SERVICE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/hash.h"

/* Room for any key, NUL included; memcached allows 250. */
#define SERVICE_KEY_MAX 128u

/* The maximum number of examples in a range, and of samples. */
#define RANGE_EXAMPLES_MAX 32u
#define RANGE_SAMPLES_MAX 128u

/* The maximum length of the id of a reader or a worker. */
#define SERVICE_ID_MAX 64u

/* An example that is decoded once and served `servings` times. The number of
 * servings is part of the name of each sample: the first decode covers the
 * crops of all servings, so it decides whether a damaged file is usable. */
struct sample_name {
	uint64_t pass, index; /* as in struct schedule_slot */
	uint32_t servings;
};

/* Write the key of serving k of an example, "rs1:JOB:PASS.INDEX.K.SERVINGS".
 * All keys have the same length. Returns the length. */
size_t service_sample_key(char key[SERVICE_KEY_MAX], struct hash128 job,
	const struct sample_name *name, uint32_t k);

/* Returns the number of examples in a range if no example has more than
 * servings_max servings. It is a power of two. */
uint32_t range_examples(uint32_t servings_max);

/* Returns the name of a range: a hash of the names of its samples, in order.
 * Readers that want the same examples in the same order want the same range,
 * whatever their ranks. */
struct hash128 range_name(const struct sample_name *name, uint32_t count);

/* Write the key of the state of a range, "rs1:JOB:r:RANGE". */
size_t service_range_key(
	char key[SERVICE_KEY_MAX], struct hash128 job, struct hash128 range);

/* Write a key of a job, "rs1:JOB:WHAT", where `what` is "conf" or "readers". */
size_t service_job_key(
	char key[SERVICE_KEY_MAX], struct hash128 job, const char *what);
/* Write the key of the record of a reader, "rs1:JOB:i:ID". */
size_t service_reader_key(
	char key[SERVICE_KEY_MAX], struct hash128 job, const char *id);
/* Write the key of the record of a worker, "rs1:w:ID". */
size_t service_worker_key(char key[SERVICE_KEY_MAX], const char *id);

/* The keys of the lists of jobs and workers. */
#define SERVICE_JOBS_KEY "rs1:jobs"
#define SERVICE_WORKERS_KEY "rs1:workers"

#endif

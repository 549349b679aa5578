/* SPDX-License-Identifier: MIT */
/*
 * Finds the lengths of the examples. Datasets of shards know the sizes of their
 * examples. For files, threads call stat(), each for one range of examples;
 * nothing else is shared.
 */
#include "loader/engine/engine_bucket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/thread_pool.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/make_fields_impl.h"

#define LOOK_THREADS 16u
/* No end; the sum with the time of the clock must not overflow. */
#define LOOK_WAIT_NS (UINT64_MAX / 4)

/* A range of examples whose lengths one thread finds. */
struct length_job {
	struct thread_job job;
	const struct dataset *dataset;
	uint32_t part;
	uint64_t begin, end;
	uint32_t *lengths;
};

static uint32_t length_of(
	const struct dataset *dataset, uint64_t index, uint32_t part)
{
	struct example e;
	struct stat st;

	if (!dataset_part(dataset, index, part, &e))
		return 0;
	if (e.whole && !e.bytes && fstatat(e.dir, e.file, &st, 0) == 0)
		e.bytes = (uint64_t)st.st_size;
	return e.bytes < UINT32_MAX ? (uint32_t)e.bytes : UINT32_MAX;
}

static void find_lengths(struct thread_job *job)
{
	struct length_job *j = CONTAINER_OF(job, struct length_job, job);

	for (uint64_t i = j->begin; i < j->end; i++)
		j->lengths[i] = length_of(j->dataset, i, j->part);
}

/* Fill in the lengths of all examples. */
static int find_all_lengths(
	const struct dataset *dataset, uint32_t part, uint32_t *lengths)
{
	uint64_t n = dataset_count(dataset);
	struct length_job jobs[LOOK_THREADS];
	struct thread_pool *pool;
	int rc = thread_pool_new(&pool, LOOK_THREADS);

	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < LOOK_THREADS; i++) {
		jobs[i] = (struct length_job){
			.dataset = dataset,
			.part = part,
			.begin = n / LOOK_THREADS * i,
			.end = i + 1 == LOOK_THREADS
				? n
				: n / LOOK_THREADS * (i + 1),
			.lengths = lengths,
		};
		thread_job_init(&jobs[i].job, find_lengths);
		thread_pool_submit(pool, &jobs[i].job);
	}
	(void)thread_pool_free(pool, LOOK_WAIT_NS); /* waits for all jobs */
	return 0;
}

int bucket_new(const struct settings *s, const struct dataset *dataset,
	uint32_t **lengths, struct buckets **out, struct error *err)
{
	uint64_t n = dataset_count(dataset);
	struct buckets_config config = {
		.examples = n,
		.seed = s->c.seed,
		.batches = s->c.bucket,
		.group = s->c.batch * s->c.world,
	};
	int rc;

	if (n > UINT32_MAX)
		return error_set(err, -E2BIG,
			"bucket: the dataset has %" PRIu64
			" examples; it can have %" PRIu32,
			n, UINT32_MAX);
	*lengths = malloc(n * sizeof(**lengths));
	if (!*lengths)
		return -ENOMEM;
	rc = find_all_lengths(dataset, fields_length_part(s), *lengths);
	if (rc < 0)
		return error_set(err, rc, "cannot start a thread: %m");
	config.lengths = *lengths;
	return buckets_new(out, &config, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * The cost of an image in locks of the loader: how often each lock is taken for
 * it, how long it is held, and the rate of images at which it would be the
 * limit. Batches are taken as fast as they come. The rate of this machine does
 * not matter, because only the time is measured for which no other thread can
 * have the lock. Exits with 1 if the limit of a lock is below LOCK_BAR_PER_S.
 *
 * \tloader-locks DATASET --batch 64 --echo 4 --epochs 4 --threads 4
 */
#include <inttypes.h>
#include <stdio.h>

#include "loader/engine/engine_impl.h"
#include "loader_options.h"
#include "lock_meter.h"

#define WAIT_MS 60000

struct watched {
	const char *name;
	int number;
};

static struct watched watch(const char *name, const pthread_mutex_t *lock)
{
	return (struct watched){name, lock_meter_watch(lock)};
}

/* Take batches until the run ends or `steps` are taken. Returns the number of
 * images, or -errno. */
static int64_t take_all(struct batch_source *source, unsigned steps)
{
	struct lent_batch *b;
	int64_t images = 0;
	int rc = 1;

	for (unsigned n = 0; rc > 0 && (!steps || n < steps); n++) {
		rc = batch_next(source, &b, WAIT_MS);
		if (rc <= 0)
			break;
		images += batch_public(b)->count;
		batch_release(b);
	}
	return rc < 0 ? rc : images;
}

/* Measure the locks. Returns 0, 1 if the limit of a lock is too low, or -errno.
 */
static int measure(struct batch_source *source, unsigned steps)
{
	const struct engine *engine = engine_of(source);
	struct watched locks[] = {
		watch("turn.lock", &engine->turn.lock),
		watch("lender.lock", lender_lock(engine->parts.lender)),
		watch("uring.lock",
			uring_lock(reader_ring(engine->parts.reader))),
	};
	uint64_t begin_ns = clock_now_ns();
	int64_t images = take_all(source, steps);
	double seconds = (double)(clock_now_ns() - begin_ns) / 1e9;
	int rc = 0;

	(void)batch_close(source); /* cannot fail: no read hangs */
	if (images < 0)
		return (int)images;
	printf("%" PRIi64 " images, %.0f images/s here\n", images,
		(double)images / seconds);
	for (size_t i = 0; i < sizeof(locks) / sizeof(*locks); i++)
		if (!lock_meter_print(locks[i].number, locks[i].name,
			    (uint64_t)images, "image"))
			rc = 1;
	return rc;
}

int main(int argc, char **argv)
{
	struct loader_options o;
	struct batch_source *source;
	struct error err = {""};
	bool done;
	int rc = loader_options_parse(&o, "loader-locks",
		"Time the locks of refrain's loader.", argc, argv, &done);

	if (done)
		return rc;
	rc = engine_open(&source, &o.config, NULL, &err);
	if (rc == 0)
		rc = measure(source, o.steps);
	if (rc < 0)
		fprintf(stderr, "loader-locks: %s\n",
			err.msg[0] ? err.msg : "a batch did not come");
	return rc != 0;
}

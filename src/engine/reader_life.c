/* SPDX-License-Identifier: MIT */
/*
 * The reader's beginning and end: its rings, its operations, the descriptors of
 * shards. What hangs at the end is left behind with all that it may write to.
 * Entered by refrain_open() and refrain_close().
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/engine_impl.h"
#include "mount_help/mount_help.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Does the kernel answer reads of cached files there on the spot? */
static bool is_local(uint32_t fs_type)
{
	static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
		BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, SQUASHFS_MAGIC};
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (fs_type == local[i])
			return true;
	return false;
}

/* Shards may take half of the descriptors that the process may have. */
static int shards_init(struct engine *engine)
{
	struct reader *reader = &engine->reader;
	uint32_t n = dataset_shards(engine->dataset);
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && n > rl.rlim_cur / 2)
		n = (uint32_t)(rl.rlim_cur / 2);
	reader->shard_fds = calloc(n + 1, sizeof(int));
	if (!reader->shard_fds)
		return -ENOMEM;
	reader->shards_max = n;
	for (uint32_t i = 0; i < n; i++)
		reader->shard_fds[i] = -1;
	return 0;
}

int reader_init(struct engine *engine, struct error *err)
{
	struct reader *reader = &engine->reader;
	uint32_t n = engine->s.c.reads_ahead;
	int rc;

	reader->local = is_local(dataset_fs_type(engine->dataset));
	reader->depth = reader->allowed = n;
	reader->queued_end = &reader->queued;
	reader->ops = calloc(n, sizeof(*reader->ops));
	if (!reader->ops || shards_init(engine) < 0)
		return error_set(err, -ENOMEM, "no memory for the reads");
	for (uint32_t i = 0; i < n; i++) {
		struct read_op *r = &reader->ops[i];

		r->engine = engine;
		r->next = reader->free;
		reader->free = r;
	}
	rc = reader->local ? uring_new(&reader->ring, n, n)
			   : uring_new_threads(&reader->ring, n);
	if (rc < 0)
		return error_set(err, rc, "cannot start reading: %m");
	return 0;
}

static uint64_t time_left(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < until_ns ? until_ns - now_ns : 0;
}

uint32_t reader_stop(struct engine *engine, uint64_t wait_ns)
{
	struct reader *reader = &engine->reader;
	uint64_t until_ns = clock_now_ns() + wait_ns;
	struct uring *direct;
	uint32_t left = 0;

	if (!reader->ring)
		return 0;
	turn_lock(&engine->turn);
	while (reader->beginning > 0)
		(void)turn_wait_until(&engine->turn, TURN_CLOSER, UINT64_MAX);
	direct = help_ring(engine->help);
	for (uint32_t i = 0; i < reader->depth; i++)
		if (reader->ops[i].busy && reader->ops[i].entry)
			uring_cancel(reader->ops[i].ring, &reader->ops[i].op);
	turn_unlock(&engine->turn);
	if ((!direct || direct == reader->ring ||
		    uring_free(direct, wait_ns)) &&
		uring_free(reader->ring, time_left(until_ns))) {
		reader->ring = NULL;
		return 0;
	}
	turn_lock(&engine->turn);
	for (uint32_t i = 0; i < reader->depth; i++)
		left += reader->ops[i].busy;
	turn_unlock(&engine->turn);
	return left ? left : 1;
}

uint64_t reader_cpu_ns(const struct engine *engine)
{
	struct uring *ring = engine->reader.ring,
		     *direct = help_ring(engine->help);
	uint64_t ns = ring ? uring_cpu_ns(ring) : 0;

	return direct && direct != ring ? ns + uring_cpu_ns(direct) : ns;
}

void reader_release(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->reader.shards_max; i++)
		if (engine->reader.shard_fds[i] >= 0)
			(void)close(
				engine->reader.shard_fds[i]); /* only read */
	free(engine->reader.shard_fds);
	free(engine->reader.ops);
}

/* SPDX-License-Identifier: MIT */
/*
 * Starts and stops the reader: its rings, its operations, and the descriptors
 * of shards. Operations that hang at the end are left behind, with all memory
 * that they may write to. Called by refrain_open() and refrain_close().
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "loader/engine/reader_files_impl.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Is this a local file system? On these the kernel answers at once if a file is
 * cached. */
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

/* Allocate the table of shards. Half of the process's limit of descriptors may
 * be used for shards that stay open. */
static int shards_init(struct reader *reader)
{
	uint32_t n = dataset_shards(reader->parts->dataset);
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

uint64_t reader_bytes(uint32_t reads)
{
	return sizeof(struct reader) + reads * sizeof(struct read_op);
}

int reader_new(struct reader **out, const struct engine_parts *parts)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	uint32_t n = parts->c->reads_ahead;

	*out = reader;
	if (!reader)
		return -ENOMEM;
	reader->parts = parts;
	reader->local = is_local(dataset_fs_type(parts->dataset));
	reader->depth = reader->allowed = n;
	reader->queued_end = &reader->queued;
	reader->ops = calloc(n, sizeof(*reader->ops));
	if (!reader->ops || shards_init(reader) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct read_op *r = &reader->ops[i];

		r->reader = reader;
		r->next = reader->free;
		reader->free = r;
	}
	return 0;
}

int reader_start(struct reader *reader, struct error *err)
{
	uint32_t n = reader->depth;
	int rc = reader->local ? uring_new(&reader->ring, n, n)
			       : uring_new_threads(&reader->ring, n);

	return rc < 0 ? error_set(err, rc, "cannot start reading: %m") : 0;
}

struct uring *reader_ring(const struct reader *reader)
{
	return reader->ring;
}

static uint64_t time_left(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < until_ns ? until_ns - now_ns : 0;
}

/* Returns the ring that the operation uses, or NULL if it is idle. */
static struct uring *ring_of(const struct reader *reader, uint32_t i)
{
	const struct read_op *r = &reader->ops[i];
	TURN_LOOK_SCOPE(reader->parts->turn);

	return r->busy && r->original ? r->ring : NULL;
}

/* Cancel all running operations. If an operation ends before it is cancelled,
 * it only begins to close its file, on the same ring. */
static void cancel_reads(struct reader *reader)
{
	for (uint32_t i = 0; i < reader->depth; i++) {
		struct uring *ring = ring_of(reader, i);

		if (ring)
			uring_cancel(ring, &reader->ops[i].op);
	}
}

uint32_t reader_stop(struct reader *reader, uint64_t wait_ns)
{
	uint64_t until_ns = clock_now_ns() + wait_ns;
	struct uring *direct;
	uint32_t left = 0;

	if (!reader->ring)
		return 0;
	turn_lock(reader->parts->turn);
	while (reader->beginning > 0)
		(void)turn_wait_until(
			reader->parts->turn, TURN_CLOSER, UINT64_MAX);
	direct = help_ring(reader->parts->help);
	turn_unlock(reader->parts->turn);
	cancel_reads(reader);
	if ((!direct || direct == reader->ring ||
		    uring_free(direct, wait_ns)) &&
		uring_free(reader->ring, time_left(until_ns))) {
		reader->ring = NULL;
		return 0;
	}
	turn_lock(reader->parts->turn);
	for (uint32_t i = 0; i < reader->depth; i++)
		left += reader->ops[i].busy;
	turn_unlock(reader->parts->turn);
	return left ? left : 1;
}

uint64_t reader_cpu_ns(const struct reader *reader)
{
	struct uring *ring = reader->ring,
		     *direct = help_ring(reader->parts->help);
	uint64_t ns = ring ? uring_cpu_ns(ring) : 0;

	ASSERT_TURN(reader->parts->turn);
	return direct && direct != ring ? ns + uring_cpu_ns(direct) : ns;
}

void reader_free(struct reader *reader)
{
	for (uint32_t i = 0; reader && i < reader->shards_max; i++)
		if (reader->shard_fds[i] >= 0)
			/* Nothing can be lost */
			(void)close(reader->shard_fds[i]);
	if (reader) {
		free(reader->shard_fds);
		free(reader->ops);
	}
	free(reader);
}

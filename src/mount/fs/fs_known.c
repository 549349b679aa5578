/* SPDX-License-Identifier: MIT */
/*
 * Computes how long the kernel may cache a name or attributes.
 */
#include "mount/fs/fs_impl.h"

#include <string.h>

#include "common/base/clock.h"
#include "mount/names/tree.h"

/* A time-out that means "for ever". DBL_MAX would overflow in the kernel. */
#define FOREVER_S 1e9

#define BLKSIZE_LEAST 4096
#define BLKSIZE_MOST (128 << 10)
#define READ_AHEAD 4u

/* The kernel may cache a missing name for the whole period, because the origin
 * was asked just now. */
double fs_missing_timeout(const struct fs_config *c)
{
	return c->revalidate_s > 0 ? c->revalidate_s : FOREVER_S;
}

/* Returns the time until the origin must be asked again. The period began when
 * the origin was last asked, which may be a while ago. */
static double due_timeout(
	const struct fs_config *c, const struct node_info *info)
{
	uint64_t due_ns = (info->checked_s + c->revalidate_s) * NS_PER_S;
	uint64_t now_ns = clock_now_ns();

	if (c->revalidate_s == 0)
		return FOREVER_S;
	return now_ns < due_ns ? (double)(due_ns - now_ns) / (double)NS_PER_S
			       : 0;
}

/* The kernel may cache attributes of a file for ever, because a new version
 * gets a new node. Those of a directory may change. */
double fs_attr_timeout(const struct fs_config *c, const struct node_info *info)
{
	return info->attr.kind == KIND_DIR ? due_timeout(c, info) : FOREVER_S;
}

/*
 * Returns the buffer size that stat() suggests to programs. In an analysis, the
 * kernel keeps no pages of items that miss, so it may request the end of a file
 * twice. But readers should be as fast as without a mount, so the whole file
 * should arrive in one READ. The kernel's first READ is up to READ_AHEAD times
 * as long as the read of the program.
 */
static blksize_t buffer_size(const struct node_info *info)
{
	uint64_t size = info->attr.version.size_bytes;
	blksize_t n = BLKSIZE_LEAST;

	if (size > CACHE_READ_MAX_BYTES)
		return n;
	while (n < BLKSIZE_MOST && (uint64_t)n * READ_AHEAD < size)
		n *= 2;
	return n;
}

void fs_stat(const struct fs_config *c, const struct node_info *info,
	struct stat *st)
{
	inode_stat(info, st);
	if (c->read_hook && info->attr.kind == KIND_FILE)
		st->st_blksize = buffer_size(info);
}

void fs_entry(const struct fs_config *c, const struct node_info *info,
	struct fuse_entry_param *e)
{
	memset(e, 0, sizeof(*e));
	e->ino = fs_ino(c, info->id);
	fs_stat(c, info, &e->attr);
	e->attr_timeout = fs_attr_timeout(c, info);
	e->entry_timeout = due_timeout(c, info);
}

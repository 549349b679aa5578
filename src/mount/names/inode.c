/* SPDX-License-Identifier: MIT */
/*
 * Converts attributes to those of stat(2). Pure functions.
 */
#include "mount/names/inode.h"

#include <string.h>

#include "common/base/clock.h"

static mode_t file_type(enum file_kind kind)
{
	switch (kind) {
	case KIND_FILE:
		return S_IFREG;
	case KIND_DIR:
		return S_IFDIR;
	case KIND_LINK:
		return S_IFLNK;
	}
	return 0;
}

void inode_stat(const struct node_info *info, struct stat *st)
{
	int64_t ns_per_s = (int64_t)NS_PER_S;
	int64_t mtime_ns = info->attr.version.mtime_ns;
	int64_t frac = mtime_ns % ns_per_s;

	memset(st, 0, sizeof(*st));
	st->st_ino = info->ino;
	st->st_mode = file_type(info->attr.kind) | info->attr.mode;
	/* a number of 1 for a directory tells programs that links are not
	 * counted */
	st->st_nlink = 1;
	st->st_uid = info->attr.uid;
	st->st_gid = info->attr.gid;
	st->st_size = (off_t)info->attr.version.size_bytes;
	/* For a directory, the C library reads names into a buffer of this
	 * size. */
	st->st_blksize = info->attr.kind == KIND_DIR ? 262144 : 4096;
	st->st_blocks = st->st_size / 512 + (st->st_size % 512 > 0);
	if (frac < 0)
		frac += ns_per_s;
	st->st_mtim.tv_sec = (mtime_ns - frac) / ns_per_s;
	st->st_mtim.tv_nsec = frac;
	st->st_ctim = st->st_atim = st->st_mtim;
}

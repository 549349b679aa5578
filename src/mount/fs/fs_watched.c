/* SPDX-License-Identifier: MIT */
/*
 * Handles the READs of a mount that is analysed: the watcher sees each one, and
 * may answer it. Ordinary mounts have another handler and never come here.
 * Entered by the workers of the session.
 */
#include "mount/fs/fs_impl.h"

#include <stdlib.h>

#include "common/base/cleanup.h"

/* False: the READ is to be answered as usual. */
static bool watched_answer(
	fuse_req_t req, fuse_ino_t ino, size_t size, uint64_t off)
{
	const struct fs *fs = fuse_req_userdata(req);
	const struct fs_config *c = &fs->config;
	node_id node = fs_node(c, ino);
	struct cache_item item = {.cookie = node};
	CLEANUP_FREE void *buf = NULL;

	if (!manifest_identity(
		    c->manifest, node, &item.digest, &item.version) ||
		off >= item.version.size_bytes || size == 0)
		return false;
	if (size > item.version.size_bytes - off)
		size = (size_t)(item.version.size_bytes - off);
	buf = malloc(size);
	cache_item_at(c->cache, off, &item);
	if (!buf ||
		!c->watch->read(c->watch->arg, &item, off, size, buf,
			fuse_req_ctx(req)->pid))
		return false;
	(void)fuse_reply_buf(req, buf, size); /* nobody else to tell */
	return true;
}

void fs_op_read_watched(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	if (off < 0 || !watched_answer(req, ino, size, (uint64_t)off))
		fs_op_read(req, ino, size, off, fi);
}

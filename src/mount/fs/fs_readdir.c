/* SPDX-License-Identifier: MIT */
/* Handles READDIR and READDIRPLUS. A directory whose names are not known is
 * listed before the request is answered. Offsets in a directory: 0 stands for
 * ".", 1 for "..", and s + 2 for slot s. */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mount/names/tree.h"

struct dir_read {
	struct tree_wait w;
	struct fs *fs;
	struct parked p;
	node_id dir;
	uint64_t pos;
	size_t size, used;
	bool plus;
	char buf[];
};

/* Add a name to the buffer. Returns false if the buffer is full. */
static bool add(struct dir_read *d, const char *name,
	const struct node_info *info, bool known, uint64_t next)
{
	struct fuse_entry_param e;
	size_t left = d->size - d->used;
	size_t need;

	if (d->plus) {
		fs_entry(&d->fs->config, info, &e);
		if (!known)
			/* the kernel takes no reference to "." and ".." */
			e.ino = 0;
		need = fuse_add_direntry_plus(d->p.req, d->buf + d->used, left,
			name, &e, (off_t)next);
	} else {
		struct stat st;

		inode_stat(info, &st);
		need = fuse_add_direntry(d->p.req, d->buf + d->used, left, name,
			&st, (off_t)next);
	}
	if (need > left)
		return false;
	d->used += need;
	return true;
}

static bool readdir_add_name(void *arg, const char *name,
	const struct node_info *info, uint64_t next_pos)
{
	return add(arg, name, info, true, next_pos + 2);
}

static bool add_dots(struct dir_read *d)
{
	struct manifest *m = d->fs->config.manifest;
	struct node_info info;

	if (d->pos == 0) {
		if (manifest_get(m, d->dir, &info) < 0 ||
			!add(d, ".", &info, false, 1))
			return false;
		d->pos = 1;
	}
	if (d->pos == 1) {
		if (manifest_get(m, manifest_parent(m, d->dir), &info) < 0 ||
			!add(d, "..", &info, false, 2))
			return false;
		d->pos = 2;
	}
	return true;
}

static void readdir_answer(struct dir_read *d)
{
	int rc = 0;

	if (add_dots(d))
		rc = manifest_readdir(d->fs->config.manifest, d->dir,
			d->pos - 2, d->plus, readdir_add_name, d);
	if (rc < 0)
		fs_reply_error(d->p.req, rc);
	else
		(void)fuse_reply_buf(d->p.req, d->buf, d->used);
	free(d);
}

static void report_listing(const struct dir_read *d, int status)
{
	char path[MANIFEST_PATH_MAX];
	struct event e = {
		.kind = EVENT_NAME_FAILED, .path = path, .status = status};
	int n = manifest_path(
		d->fs->config.manifest, d->dir, path, sizeof(path));

	if (n <= 0)
		(void)strcpy(path, ".");
	if (status == -E2BIG)
		e.kind = EVENT_NAMES_FULL;
	if (status != -ENOMEM && status != -ENOTCONN)
		event_report(d->fs->config.events, &e);
}

static void listed(struct tree_wait *w, int status)
{
	struct dir_read *d = CONTAINER_OF(w, struct dir_read, w);

	if (!parked_claim(&d->p)) {
		free(d);
		return;
	}
	if (status >= 0) {
		readdir_answer(d);
		return;
	}
	if (status != -ENOENT && status != -ESTALE && status != -EACCES) {
		report_listing(d, status);
		status = -EIO;
	}
	fs_reply_error(d->p.req, status);
	free(d);
}

static void op_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));
	struct dir_read *d = malloc(sizeof(*d) + size);
	struct node_info info;
	int rc;

	if (!d) {
		fs_reply_error(req, -ENOMEM);
		return;
	}
	*d = (struct dir_read){
		.w = {.done = listed},
		.fs = fs,
		.dir = fs_node(&fs->config, ino),
		.pos = (uint64_t)off,
		.size = size,
		.plus = plus,
	};
	parked_init(&d->p, req);
	if (off == 0 && manifest_get(fs->config.manifest, d->dir, &info) == 0)
		tree_revalidate_dir(fs->config.tree, &info);
	rc = tree_list(fs->config.tree, d->dir, false, &d->w);
	if (rc != 0)
		listed(&d->w, rc);
}

void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	(void)fi; /* opens have no state */
	op_readdir(req, ino, size, off, false);
}

void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	(void)fi;
	op_readdir(req, ino, size, off, true);
}

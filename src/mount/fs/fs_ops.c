/* SPDX-License-Identifier: MIT */
/* The handlers except READ and READDIR. Each one parses the request, asks the
 * tree and replies. No handler waits for an origin. Errors of replies are
 * ignored, because they mean that the kernel has given up the request. */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/feature.h"
#include "common/base/magic.h"
#include "common/control/talk.h"
#include "mount/names/tree.h"

/* The kernel's limit for requests in flight. It is high, so that hits do not
 * wait in the kernel. */
#define MAX_BACKGROUND 4096u

/* -- Names --------------------------------------------------------------- */

struct name_read {
	struct tree_lookup l;
	struct fs *fs;
	struct parked p;
};

static void reply_name(
	struct fs *fs, fuse_req_t req, int status, const struct node_info *info)
{
	struct fuse_entry_param e;

	if (status >= 0) {
		fs_entry(&fs->config, info, &e);
		if (fuse_reply_entry(req, &e) < 0)
			manifest_unref(fs->config.manifest, info->id, 1);
		return;
	}
	if (status == -ENOENT) {
		memset(&e, 0, sizeof(e));
		e.entry_timeout = fs_missing_timeout(&fs->config);
		(void)fuse_reply_entry(req, &e);
		return;
	}
	if (status != -ENAMETOOLONG && status != -ENOTDIR &&
		status != -ESTALE && status != -ENOMEM && status != -EACCES)
		status = -EIO;
	/* not counted as an error, because the kernel looks the name up again
	 */
	if (status == -ESTALE)
		(void)fuse_reply_err(req, ESTALE);
	else
		fs_reply_error(req, status);
}

/* Answer a look-up. If the name was found, the caller passes a reference to the
 * node. */
static void name_end(
	struct name_read *n, int status, const struct node_info *info)
{
	if (parked_claim(&n->p))
		reply_name(n->fs, n->p.req, status, info);
	else if (status >= 0)
		manifest_unref(n->fs->config.manifest, info->id, 1);
	free(n);
}

static void name_done(
	struct tree_lookup *l, int status, const struct node_info *info)
{
	name_end(CONTAINER_OF(l, struct name_read, l), status, info);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));
	struct name_read *n = malloc(sizeof(*n));
	struct node_info info;
	int rc;

	if (!n) {
		fs_reply_error(req, -ENOMEM);
		return;
	}
	n->l.done = name_done;
	n->fs = fs;
	parked_init(&n->p, req);
	rc = tree_lookup(fs->config.tree, fs_node(&fs->config, parent), name,
		&n->l, &info);
	if (rc != 0)
		name_end(n, rc, &info);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));

	manifest_unref(fs->config.manifest, fs_node(&fs->config, ino), nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(
	fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));

	for (size_t i = 0; i < count; i++)
		manifest_unref(fs->config.manifest,
			fs_node(&fs->config, forgets[i].ino),
			forgets[i].nlookup);
	fuse_reply_none(req);
}

/* -- Attributes ---------------------------------------------------------- */

static void op_getattr(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));
	struct node_info info;
	struct stat st;

	(void)fi; /* opens have no state */
	if (manifest_get(fs->config.manifest, fs_node(&fs->config, ino),
		    &info) < 0) {
		(void)fuse_reply_err(req, ESTALE);
		return;
	}
	if (info.attr.kind == KIND_DIR)
		tree_revalidate_dir(fs->config.tree, &info);
	fs_stat(&fs->config, &info, &st);
	(void)fuse_reply_attr(req, &st, fs_attr_timeout(&fs->config, &info));
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));
	char target[MANIFEST_PATH_MAX];
	int rc = manifest_target(fs->config.manifest, fs_node(&fs->config, ino),
		target, sizeof(target));

	if (rc < 0)
		fs_reply_error(req, rc);
	else
		(void)fuse_reply_readlink(req, target);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));
	struct manifest_totals t;
	struct statvfs st;

	(void)ino; /* the same for all files */
	manifest_totals(fs->config.manifest, &t);
	memset(&st, 0, sizeof(st));
	st.f_bsize = st.f_frsize = 4096;
	st.f_blocks = (t.bytes + 4095) / 4096;
	st.f_files = t.files + t.directories + t.links + 1;
	st.f_namemax = 255;
	(void)fuse_reply_statfs(req, &st);
}

static void reply_xattr(
	fuse_req_t req, const char *value, size_t len, size_t size)
{
	if (size == 0)
		(void)fuse_reply_xattr(req, len);
	else if (size < len)
		(void)fuse_reply_err(req, ERANGE);
	else
		(void)fuse_reply_buf(req, value, len);
}

/* The extended attributes of the origin are not shown. The root has one
 * attribute, which names the control socket. */
static void op_getxattr(
	fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));
	const char *control = fs->config.control;

	if (ino != FUSE_ROOT_ID || strcmp(name, TALK_XATTR) != 0)
		(void)fuse_reply_err(req, ENODATA);
	else
		reply_xattr(req, control, strlen(control), size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	if (ino == FUSE_ROOT_ID)
		reply_xattr(req, TALK_XATTR, sizeof(TALK_XATTR), size);
	else
		reply_xattr(req, "", 0, size);
}

/* -- Opens: after one ENOSYS, the kernel opens files by itself ------------ */

static void reply_open(fuse_req_t req, struct fuse_file_info *fi)
{
	struct fs *fs = OBJECT(fs, fuse_req_userdata(req));

	if (fs->stateless) {
		(void)fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->keep_cache = 1;
	fi->cache_readdir = 1;
	(void)fuse_reply_open(req, fi);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino; /* opens have no state */
	if ((fi->flags & O_ACCMODE) != O_RDONLY)
		(void)fuse_reply_err(req, EROFS);
	else
		reply_open(req, fi);
}

static void op_opendir(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	reply_open(req, fi);
}

static void op_release(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	(void)fuse_reply_err(req, 0);
}

/* -- Changes: refused, even after a remount to read-write ---------------- */

#define REFUSE(name, ...)                                                      \
	static void op_##name(fuse_req_t req, __VA_ARGS__)                     \
	{                                                                      \
		(void)fuse_reply_err(req, EROFS);                              \
	}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
REFUSE(setattr, fuse_ino_t ino, struct stat *attr, int to_set,
	struct fuse_file_info *fi)
REFUSE(mknod, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
REFUSE(mkdir, fuse_ino_t parent, const char *name, mode_t mode)
REFUSE(unlink, fuse_ino_t parent, const char *name)
REFUSE(rmdir, fuse_ino_t parent, const char *name)
REFUSE(symlink, const char *link, fuse_ino_t parent, const char *name)
REFUSE(rename, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
	const char *newname, unsigned int flags)
REFUSE(link, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
REFUSE(write, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
REFUSE(setxattr, fuse_ino_t ino, const char *name, const char *value,
	size_t size, int flags)
REFUSE(removexattr, fuse_ino_t ino, const char *name)
REFUSE(create, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *fi)
REFUSE(fallocate, fuse_ino_t ino, int mode, off_t offset, off_t length,
	struct fuse_file_info *fi)
#pragma GCC diagnostic pop

/* -- The first request --------------------------------------------------- */

static void want(struct fuse_conn_info *conn, unsigned cap, bool on)
{
	conn->want &= ~cap;
	if (on)
		conn->want |= conn->capable & cap;
}

static void init_choose(struct fs *fs, struct fuse_conn_info *conn)
{
	bool plus = feature_enabled("readdirplus");

	/* Splicing did not make reads faster. The kernel need not check for
	 * changed data, because the data of a version never changes. */
	want(conn, FUSE_CAP_SPLICE_READ, false);
	want(conn, FUSE_CAP_SPLICE_WRITE, false);
	want(conn, FUSE_CAP_SPLICE_MOVE, false);
	/* In a mount without open requests, the kernel would take this flag as
	 * a sign that each open has truncated the file. */
	want(conn, FUSE_CAP_ATOMIC_O_TRUNC, false);
	want(conn, FUSE_CAP_AUTO_INVAL_DATA, false);
	want(conn, FUSE_CAP_EXPLICIT_INVAL_DATA, true);
	want(conn, FUSE_CAP_CACHE_SYMLINKS, true);
	want(conn, FUSE_CAP_PARALLEL_DIROPS, true);
	/* READDIRPLUS for every listing, because programs that list a dataset
	 * usually call stat() for its files, too. */
	want(conn, FUSE_CAP_READDIRPLUS, plus);
	want(conn, FUSE_CAP_READDIRPLUS_AUTO, false);
	fs->stateless = feature_enabled("stateless_open") &&
		(conn->capable & FUSE_CAP_NO_OPEN_SUPPORT) &&
		(conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT);
	conn->max_write = FS_TRANSFER_MAX;
	conn->max_readahead = 8 << 20;
	conn->max_background = MAX_BACKGROUND;
	conn->congestion_threshold = MAX_BACKGROUND;
}

static void init_keep(struct fs *fs, const struct fuse_conn_info *conn)
{
	struct session_agreed agreed = {
		.want = conn->want,
		.max_write = conn->max_write,
		.max_readahead = conn->max_readahead,
		.max_background = conn->max_background,
		.congestion = conn->congestion_threshold,
		.stateless = fs->stateless,
	};

	session_keep_agreed(fs->config.session, &agreed);
	if (takeover_can_resend(fs->config.session))
		return;
	/* If this fails, the mount works, but it ends when this process ends.
	 */
	fs->journal = journal_new();
	if (fs->journal && journal_attach(fs) < 0) {
		journal_free(fs->journal);
		fs->journal = NULL;
	}
}

/* Use the result of the earlier handshake, even where this program would choose
 * otherwise, because the kernel continues with that result. */
static void init_repeat(struct fs *fs, struct fuse_conn_info *conn)
{
	const struct session_agreed *a = session_agreed(fs->config.session);

	conn->want = a->want;
	conn->max_write = a->max_write;
	conn->max_readahead = a->max_readahead;
	conn->max_background = a->max_background;
	conn->congestion_threshold = a->congestion;
	fs->stateless = a->stateless != 0;
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fs *fs = OBJECT(fs, userdata);

	if (session_connection(fs->config.session) >= 0) {
		init_repeat(fs, conn);
	} else {
		init_choose(fs, conn);
		init_keep(fs, conn);
	}
	notifier_begin(fs);
	fs->ready(fs->ready_arg);
	fs->greeted = true;
}

const struct fuse_lowlevel_ops fs_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.readlink = op_readlink,
	.statfs = op_statfs,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.open = op_open,
	.release = op_release,
	.opendir = op_opendir,
	.releasedir = op_release,
	.read = fs_op_read,
	.readdir = fs_op_readdir,
	.readdirplus = fs_op_readdirplus,
	.setattr = op_setattr,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.write = op_write,
	.setxattr = op_setxattr,
	.removexattr = op_removexattr,
	.create = op_create,
	.fallocate = op_fallocate,
};

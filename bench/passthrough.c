/* SPDX-License-Identifier: MIT */
/*
 * passthrough: shows a directory below another name, and copies each file that
 * is read to a second directory: written unnamed, and linked once it is
 * complete. A caching file system cannot do less for a cold file, so its cost
 * is compared with that of this program. Read-only; only for measurements.
 *
 *   passthrough DIR MOUNTPOINT TIER
 *
 * Stays in the foreground until unmounted. Files in TIER have numbers as names.
 * Nothing is checked, kept in order or limited.
 */
#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/cleanup.h"

#define FOREVER 1e9
#define READ_MAX ((size_t)1 << 20)

/* A name that was looked up, with its path from the top. The kernel has the
 * address as its inode number. Never freed. */
struct node {
	char path[PATH_MAX];
};

struct opened {
	int fd, copy_fd;
	off_t bytes;
	_Atomic off_t copied; /* relaxed: of independent reads */
};

static int top_fd, tier_fd; /* set once */
static struct node top = {"."};
static _Atomic unsigned long copies; /* relaxed */

static struct node *node_of(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &top : (struct node *)ino;
}

static void pass_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {
		.attr_timeout = FOREVER, .entry_timeout = FOREVER};
	struct node *node = malloc(sizeof(*node));

	if (!node ||
		snprintf(node->path, sizeof(node->path), "%s/%s",
			node_of(parent)->path, name) >= PATH_MAX ||
		fstatat(top_fd, node->path, &e.attr, AT_SYMLINK_NOFOLLOW) < 0) {
		free(node);
		fuse_reply_err(req, ENOENT);
		return;
	}
	e.ino = (fuse_ino_t)(uintptr_t)node;
	fuse_reply_entry(req, &e);
}

static void pass_getattr(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	if (fstatat(top_fd, node_of(ino)->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_attr(req, &st, FOREVER);
}

static void pass_opendir(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	int fd = openat(
		top_fd, node_of(ino)->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fuse_reply_err(req, errno);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)dir;
	fuse_reply_open(req, fi);
}

/* Like a directory stream, this goes on where the last call has ended. */
static void pass_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	DIR *dir = (DIR *)(uintptr_t)fi->fh;
	CLEANUP_FREE char *buf = malloc(size);
	const struct dirent *e;
	size_t len = 0;

	(void)ino;
	seekdir(dir, off);
	while (buf && (e = readdir(dir))) {
		struct stat st = {
			.st_ino = e->d_ino, .st_mode = (mode_t)e->d_type << 12};
		size_t n = fuse_add_direntry(req, buf + len, size - len,
			e->d_name, &st, telldir(dir));

		if (n > size - len)
			break;
		len += n;
	}
	fuse_reply_buf(req, buf, len);
}

static void pass_releasedir(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_err(req, closedir((DIR *)(uintptr_t)fi->fh) < 0 ? errno : 0);
}

static void pass_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct opened *o = calloc(1, sizeof(*o));
	struct stat st;

	if (o)
		o->fd = openat(
			top_fd, node_of(ino)->path, O_RDONLY | O_CLOEXEC);
	if (!o || o->fd < 0 || fstat(o->fd, &st) < 0) {
		fuse_reply_err(req, errno);
		free(o);
		return;
	}
	o->copy_fd =
		openat(tier_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	o->bytes = st.st_size;
	fi->fh = (uint64_t)(uintptr_t)o;
	fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

static void copy_part(struct opened *o, char *data, size_t bytes, off_t off)
{
	struct iovec iov = {data, bytes};
	char from[64], name[32];

	if (pwritev(o->copy_fd, &iov, 1, off) != (ssize_t)bytes ||
		atomic_fetch_add(&o->copied, (off_t)bytes) + (off_t)bytes !=
			o->bytes)
		return;
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", o->copy_fd);
	(void)snprintf(name, sizeof(name), "%lu", atomic_fetch_add(&copies, 1));
	if (linkat(AT_FDCWD, from, tier_fd, name, AT_SYMLINK_FOLLOW) < 0)
		perror("passthrough: cannot link a copy");
}

static void pass_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	static _Thread_local char data[READ_MAX];
	struct opened *o = (struct opened *)(uintptr_t)fi->fh;
	ssize_t n = pread(o->fd, data, size < READ_MAX ? size : READ_MAX, off);

	(void)ino;
	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	copy_part(o, data, (size_t)n, off);
	fuse_reply_buf(req, data, (size_t)n);
}

static void pass_release(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct opened *o = (struct opened *)(uintptr_t)fi->fh;

	(void)ino;
	(void)close(o->fd);	 /* nothing was written to it */
	(void)close(o->copy_fd); /* the copy is not used */
	free(o);
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = pass_lookup,
	.getattr = pass_getattr,
	.opendir = pass_opendir,
	.readdir = pass_readdir,
	.releasedir = pass_releasedir,
	.open = pass_open,
	.read = pass_read,
	.release = pass_release,
};

static int serve(const char *mountpoint)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	struct fuse_session *session = NULL;
	int rc = -1;

	if (loop && fuse_opt_add_arg(&args, "passthrough") == 0 &&
		fuse_opt_add_arg(&args, "-oro,fsname=passthrough") == 0)
		session = fuse_session_new(
			&args, &operations, sizeof(operations), NULL);
	if (session && fuse_set_signal_handlers(session) == 0 &&
		fuse_session_mount(session, mountpoint) == 0) {
		rc = fuse_session_loop_mt(session, loop);
		fuse_session_unmount(session);
	}
	if (session)
		fuse_session_destroy(session);
	fuse_loop_cfg_destroy(loop);
	fuse_opt_free_args(&args);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: passthrough DIR MOUNTPOINT TIER\n");
		return 2;
	}
	top_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tier_fd = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top_fd < 0 || tier_fd < 0) {
		perror("passthrough: cannot open a directory");
		return EXIT_FAILURE;
	}
	return serve(argv[2]);
}

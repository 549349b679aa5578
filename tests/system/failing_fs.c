/* SPDX-License-Identifier: MIT */
/*
 * failing-fs: shows a directory under another name, as a disk that fails and is
 * repaired again. Only for tests.
 *
 *	failing-fs DIR MOUNTPOINT SWITCH in the foreground until unmounted
 *
 * The file SWITCH has a word that says what fails:
 * "all": everything that needs the disk fails with EIO.
 * "data": reads and writes fail with EIO. Names can be looked up, made,
 * removed.
 * "data NAME": reads and writes of files with NAME in their path fail with EIO.
 * "quota": writes fail with EDQUOT; "room": writes fail with ENOSPC.
 * "frozen": writes and new files fail with EROFS. If the file does not exist,
 * nothing fails. The kernel caches nothing, because its cache would hide
 * failures. Unnamed files are not supported. All data that libfuse's threads
 * share is set before they start.
 */
#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"

struct failing_fs {
	/* the directory that is shown; set before the threads start */
	int top_fd;
	const char *switch_path; /* set once */
};

static struct failing_fs *the_fs(void)
{
	return fuse_get_context()->private_data;
}

static int top(void)
{
	return the_fs()->top_fd;
}

static const char *relative(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int result(int rc)
{
	return rc < 0 ? -errno : 0;
}

/* Does the switch have this word, without a name or with one that is in the
 * path? */
static bool switched_to(const char *what, const char *path)
{
	char text[64] = "", word[32] = "", name[32] = "";
	CLEANUP_FD int fd = open(the_fs()->switch_path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
		sscanf(text, "%31s %31s", word, name) >= 1 &&
		strcmp(word, what) == 0 && strstr(path, name);
}

static int no_names(const char *path)
{
	return switched_to("all", path) ? -EIO : 0;
}

static int no_data(const char *path)
{
	return switched_to("data", path) ? -EIO : no_names(path);
}

static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	(void)conn;
	config->entry_timeout = config->attr_timeout = 0;
	config->negative_timeout = 0;
	config->direct_io = 1;
	config->use_ino = 1; /* callers identify an entry by its inode number */
	config->hard_remove = 1;
	return the_fs();
}

static int fs_getattr(
	const char *path, struct stat *st, struct fuse_file_info *fi)
{
	int rc = no_names(path);

	if (rc)
		return rc;
	return result(
		fi ? fstat((int)fi->fh, st)
		   : fstatat(top(), relative(path), st, AT_SYMLINK_NOFOLLOW));
}

static int fs_readdir(const char *path, void *buf, fuse_fill_dir_t fill,
	off_t off, struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int fd = openat(
		top(), relative(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_DIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int rc = no_names(path);

	(void)off;
	(void)fi;
	(void)flags;
	if (rc || !dir)
		return rc ? rc : -errno;
	while ((e = readdir(dir))) {
		struct stat st = {.st_ino = e->d_ino,
			.st_mode = (mode_t)DTTOIF(e->d_type)};

		if (fill(buf, e->d_name, &st, 0, 0))
			break;
	}
	return 0;
}

static int open_it(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	int rc = no_names(path);
	int fd;

	if (rc)
		return rc;
	fd = openat(top(), relative(path), fi->flags | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	fi->fh = (uint64_t)fd;
	return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	return open_it(path, 0, fi);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return switched_to("frozen", path) ? -EROFS : open_it(path, mode, fi);
}

static int fs_read(const char *path, char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	int rc = no_data(path);
	ssize_t n = rc ? 0 : pread((int)fi->fh, buf, size, off);

	return rc ? rc : n < 0 ? -errno : (int)n;
}

static int fs_write(const char *path, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	int rc = switched_to("quota", path)   ? -EDQUOT
		: switched_to("room", path)   ? -ENOSPC
		: switched_to("frozen", path) ? -EROFS
					      : no_data(path);
	ssize_t n = rc ? 0 : pwrite((int)fi->fh, buf, size, off);

	return rc ? rc : n < 0 ? -errno : (int)n;
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return result(close((int)fi->fh));
}

static int fs_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	int rc = no_data(path);

	(void)data_only;
	return rc ? rc : result(fsync((int)fi->fh));
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	CLEANUP_FD int fd = -1;
	int rc = no_data(path);

	if (rc)
		return rc;
	if (fi)
		return result(ftruncate((int)fi->fh, size));
	fd = openat(top(), relative(path), O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : result(ftruncate(fd, size));
}

static int fs_mkdir(const char *path, mode_t mode)
{
	int rc = no_names(path);

	return rc ? rc : result(mkdirat(top(), relative(path), mode));
}

static int fs_unlink(const char *path)
{
	int rc = no_names(path);

	return rc ? rc : result(unlinkat(top(), relative(path), 0));
}

static int fs_rmdir(const char *path)
{
	int rc = no_names(path);

	return rc ? rc : result(unlinkat(top(), relative(path), AT_REMOVEDIR));
}

static int fs_rename(const char *from, const char *to, unsigned int flags)
{
	int rc = no_names(from);

	if (rc || flags)
		return rc ? rc : -EINVAL;
	return result(renameat(top(), relative(from), top(), relative(to)));
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	int rc = no_names(path);

	(void)fi;
	return rc ? rc : result(fchmodat(top(), relative(path), mode, 0));
}

static int fs_statfs(const char *path, struct statvfs *st)
{
	(void)path;
	return result(fstatvfs(top(), st));
}

static const struct fuse_operations operations = {
	.init = fs_init,
	.getattr = fs_getattr,
	.readdir = fs_readdir,
	.open = fs_open,
	.create = fs_create,
	.read = fs_read,
	.write = fs_write,
	.release = fs_release,
	.fsync = fs_fsync,
	.truncate = fs_truncate,
	.mkdir = fs_mkdir,
	.unlink = fs_unlink,
	.rmdir = fs_rmdir,
	.rename = fs_rename,
	.chmod = fs_chmod,
	.statfs = fs_statfs,
};

int main(int argc, char **argv)
{
	char options[] = "-ofsname=failing,subtype=failing,default_permissions,"
			 "max_threads=8,max_idle_threads=8";
	char foreground[] = "-f";
	struct failing_fs fs = {.top_fd = -1};

	if (argc != 4) {
		fprintf(stderr, "usage: failing-fs DIR MOUNTPOINT SWITCH\n");
		return 2;
	}
	fs.switch_path = argv[3];
	fs.top_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fs.top_fd < 0) {
		fprintf(stderr, "failing-fs: cannot open '%s'\n", argv[1]);
		return EXIT_FAILURE;
	}
	(void)umask(0); /* the kernel has applied the caller's umask already */
	return fuse_main(4, ((char *[]){argv[0], argv[2], foreground, options}),
		&operations, &fs);
}

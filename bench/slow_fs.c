/* SPDX-License-Identifier: MIT */
/*
 * slow-fs: shows a directory below another name, and takes its time: every
 * open, read and directory listing is answered so many milliseconds after it
 * came. What an origin across a network is to its reader, any number of
 * requests at once. Read-only; a stand-in for measurements, nothing more.
 *
 *   slow-fs DIR MOUNTPOINT MS      stays in the foreground until unmounted
 *
 * libfuse's threads enter it; each request sleeps on the thread that has it,
 * so there are as many threads as requests.
 */
#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Requests that are slept at once, at most; the kernel's own bound, too. */
#define THREADS 256

struct slow_fs {
	int top_fd;    /* set once: the directory shown */
	long delay_ns; /* set once */
};

static struct slow_fs *the_fs(void)
{
	return fuse_get_context()->private_data;
}

static const char *relative(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static void take_time(void)
{
	struct timespec left = {
		.tv_sec = the_fs()->delay_ns / NS_PER_S,
		.tv_nsec = the_fs()->delay_ns % NS_PER_S,
	};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void *slow_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	conn->max_background = THREADS;
	conn->congestion_threshold = THREADS;
	/* Names and attributes are asked once: they are not what is slow. */
	config->entry_timeout = config->attr_timeout = 3600;
	return the_fs();
}

static int slow_getattr(
	const char *path, struct stat *st, struct fuse_file_info *fi)
{
	int rc = fi ? fstat((int)fi->fh, st)
		    : fstatat(the_fs()->top_fd, relative(path), st,
			      AT_SYMLINK_NOFOLLOW);

	return rc < 0 ? -errno : 0;
}

static int slow_readdir(const char *path, void *buf, fuse_fill_dir_t fill,
	off_t off, struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int fd = openat(the_fs()->top_fd, relative(path),
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP_DIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	(void)off;
	(void)fi;
	(void)flags;
	if (!dir)
		return -errno;
	take_time();
	while ((e = readdir(dir)))
		if (fill(buf, e->d_name, NULL, 0, 0))
			break;
	return 0;
}

static int slow_open(const char *path, struct fuse_file_info *fi)
{
	int fd = openat(the_fs()->top_fd, relative(path), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	take_time();
	fi->fh = (uint64_t)fd;
	return 0;
}

static int slow_read(const char *path, char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	ssize_t n = pread((int)fi->fh, buf, size, off);

	(void)path;
	take_time();
	return n < 0 ? -errno : (int)n;
}

static int slow_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return close((int)fi->fh) < 0 ? -errno : 0;
}

static const struct fuse_operations operations = {
	.init = slow_init,
	.getattr = slow_getattr,
	.readdir = slow_readdir,
	.open = slow_open,
	.read = slow_read,
	.release = slow_release,
};

static int serve(struct slow_fs *fs, char *program, const char *mountpoint)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	struct fuse *fuse;
	int rc;

	if (!loop)
		return EXIT_FAILURE;
	fuse_loop_cfg_set_max_threads(loop, THREADS);
	fuse_loop_cfg_set_idle_threads(loop, THREADS);

	if (fuse_opt_add_arg(&args, program) < 0 ||
		fuse_opt_add_arg(&args, "-oro,fsname=slow,subtype=slow") < 0)
		return EXIT_FAILURE;
	fuse = fuse_new(&args, &operations, sizeof(operations), fs);
	fuse_opt_free_args(&args);
	if (!fuse || fuse_mount(fuse, mountpoint) != 0)
		return EXIT_FAILURE; /* libfuse has said why */
	rc = fuse_loop_mt(fuse, loop);
	fuse_loop_cfg_destroy(loop);
	fuse_unmount(fuse);
	fuse_destroy(fuse);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct slow_fs fs = {.top_fd = -1};
	int status;

	if (argc != 4) {
		fprintf(stderr, "usage: slow-fs DIR MOUNTPOINT MS\n");
		return 2;
	}
	fs.delay_ns = (long)(strtod(argv[3], NULL) * (double)NS_PER_MS);
	fs.top_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fs.top_fd < 0) {
		fprintf(stderr, "slow-fs: cannot open '%s'\n", argv[1]);
		return EXIT_FAILURE;
	}
	status = serve(&fs, argv[0], argv[2]);
	(void)close(fs.top_fd);
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reads files of a source in memory at once, on the caller's thread. No call
 * here waits for a device or a server: the source is a tmpfs, no path leaves
 * its mount, names must be in the kernel's cache, and special files are opened
 * without waiting. Whatever is out of the ordinary is left to posix_read.c.
 */
#include "origin/local/posix_read_impl.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* Linux has this since 5.12. Older headers lack the constant. */
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

static int open_in_memory(const struct posix *p, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV |
			RESOLVE_CACHED,
	};

	return (int)syscall(SYS_openat2, p->root_fd, path, &how, sizeof(how));
}

static bool read_in_memory(int fd, char *to, size_t len, uint64_t off)
{
	while (len > 0) {
		ssize_t n = pread(fd, to, len, (off_t)off);

		if (n <= 0)
			return false;
		to += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

static bool is_version(int fd, struct file_version want)
{
	struct file_version now;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	now = (struct file_version){
		.size_bytes = (uint64_t)st.st_size,
		.mtime_ns = clock_file_ns(
			st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec),
	};
	return version_equal(now, want);
}

int posix_read_now(struct origin *o, const struct origin_read *r, void *bytes)
{
	struct posix *p = OBJECT(posix, o);
	CLEANUP_FD int fd = -1;

	if (!p->in_memory || r->file->bad ||
		posix_unsettled_ns(r->want.mtime_ns) > 0)
		return -EAGAIN;
	fd = open_in_memory(p, r->file->path);
	/* The version is checked after the bytes were read, as in
	 * posix_read.c. */
	if (fd < 0 || !read_in_memory(fd, bytes, r->len, r->off) ||
		!is_version(fd, r->want))
		return -EAGAIN;
	return 0;
}

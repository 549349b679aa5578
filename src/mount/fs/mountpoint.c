/* SPDX-License-Identifier: MIT */
/*
 * Finds mounts, and changes settings of our own mount if root runs the daemon:
 * reads /proc/self/mountinfo, and sets the read-ahead of the mount's device.
 */
#include "mount/fs/fs_impl.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"
#include "common/base/proc.h"

/* A good read-ahead for files of some hundred KiB or more. */
#define GOOD_READ_AHEAD_KIB 1024u

/* The device number of /dev/fuse. It is the same on all machines. */
#define FUSE_DEVICE makedev(10, 229)

int fs_probe(const char *mountpoint)
{
	struct mountinfo_device m;
	struct statfs st;

	if (mountinfo_find(mountpoint, &m) < 0)
		return 0;
	/* Use statfs(), because the kernel answers stat() even if the daemon is
	 * dead. */
	if (statfs(mountpoint, &st) < 0 && errno == ENOTCONN)
		return -ENOTCONN;
	return m.refrain ? 1 : -EBUSY;
}

/* -- A connection that another program has opened ------------------------- */

#define GIVEN_PREFIX "/dev/fd/"

int fs_given_connection(const char *mountpoint)
{
	const char *digits = mountpoint + strlen(GIVEN_PREFIX);
	char *end;
	long n;

	if (strncmp(mountpoint, GIVEN_PREFIX, strlen(GIVEN_PREFIX)) != 0 ||
		!isdigit((unsigned char)*digits))
		return -1;
	errno = 0;
	n = strtol(digits, &end, 10);
	return *end || errno || n > INT_MAX ? -1 : (int)n;
}

int fs_check_connection(int fd, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, -EBADF,
			"descriptor %d is not open; the program that mounts "
			"must pass it on",
			fd);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != FUSE_DEVICE)
		return error_set(
			err, -ENODEV, "descriptor %d is no open /dev/fuse", fd);
	return 0;
}

/* -- Read-ahead ---------------------------------------------------------- */

static bool find_own_device(const struct fs *fs, struct mountinfo_device *out)
{
	int fd = fs_given_connection(fs->config.mountpoint);

	if (fd < 0)
		return mountinfo_find(fs->config.mountpoint, out) == 0;
	*out = (struct mountinfo_device){
		.minor = proc_fuse_device(getpid(), fd)};
	return out->minor != 0;
}

static int open_read_ahead(const struct fs *fs, int flags)
{
	struct mountinfo_device m;
	char path[64];

	if (!find_own_device(fs, &m))
		return -1;
	(void)snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb",
		m.major, m.minor);
	return open(path, flags | O_CLOEXEC);
}

static unsigned get_read_ahead(const struct fs *fs)
{
	CLEANUP_FD int fd = open_read_ahead(fs, O_RDONLY);
	char text[32];
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return (unsigned)strtoul(text, NULL, 10);
}

static void raise_read_ahead(const struct fs *fs)
{
	CLEANUP_FD int fd = open_read_ahead(fs, O_WRONLY);

	if (fd >= 0)
		(void)dprintf(fd, "%u\n", GOOD_READ_AHEAD_KIB);
}

unsigned fs_read_ahead_kib(struct fs *fs)
{
	unsigned kib = atomic_load(&fs->read_ahead_kib);

	if (kib != 0)
		return kib;
	kib = get_read_ahead(fs);
	if (kib != 0 && kib < GOOD_READ_AHEAD_KIB) {
		raise_read_ahead(fs); /* only root may do this */
		kib = get_read_ahead(fs);
	}
	atomic_store(&fs->read_ahead_kib, kib);
	return kib;
}

size_t fs_limits(struct fs *fs, const char **sentence, size_t max)
{
	unsigned kib = fs_read_ahead_kib(fs);
	size_t n = 0;

	if (n < max && kib < GOOD_READ_AHEAD_KIB &&
		(kib > 0 || fs_given_connection(fs->config.mountpoint) < 0))
		sentence[n++] = "read-ahead of the mount is below 1024 KiB: "
				"root can raise it in "
				"/sys/class/bdi/<device>/read_ahead_kb";
	if (n < max && !fs->stateless)
		sentence[n++] = "the kernel sends a request for every open: it "
				"does not support stateless opens, or they are "
				"switched off";
	return n;
}

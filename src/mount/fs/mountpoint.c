/* SPDX-License-Identifier: MIT */
/*
 * Finds mounts, and changes settings of our own mount that root could change:
 * reads /proc/self/mountinfo and sets the read-ahead of the mount's device.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"

/* A good read-ahead for files of some hundred KiB and more. */
#define GOOD_READ_AHEAD_KIB 1024u

int fs_probe(const char *mountpoint)
{
	struct mountinfo_device m;
	struct statfs st;

	if (mountinfo_find(mountpoint, &m) < 0)
		return 0;
	/* stat() would not do: the kernel answers it even if the daemon is
	 * dead. */
	if (statfs(mountpoint, &st) < 0 && errno == ENOTCONN)
		return -ENOTCONN;
	return m.refrain ? 1 : -EBUSY;
}

/* -- Read-ahead ---------------------------------------------------------- */

static int open_read_ahead(const struct fs *fs, int flags)
{
	struct mountinfo_device m;
	char path[64];

	if (mountinfo_find(fs->config.mountpoint, &m) < 0)
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
		raise_read_ahead(fs); /* root may */
		kib = get_read_ahead(fs);
	}
	atomic_store(&fs->read_ahead_kib, kib);
	return kib;
}

size_t fs_limits(struct fs *fs, const char **sentence, size_t max)
{
	size_t n = 0;

	if (n < max && fs_read_ahead_kib(fs) < GOOD_READ_AHEAD_KIB)
		sentence[n++] = "read-ahead of the mount is below 1024 KiB: "
				"root can raise it in "
				"/sys/class/bdi/<device>/read_ahead_kb";
	if (n < max && !fs->stateless)
		sentence[n++] = "the kernel sends a request for every open: it "
				"does not support stateless opens, or they are "
				"switched off";
	return n;
}

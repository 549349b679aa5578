/* SPDX-License-Identifier: MIT */
/*
 * Writes an entry to an unnamed file, and gives the file its name when it is
 * complete. On file systems without unnamed files, writes a file in tmp/ and
 * renames it. Each publisher owns the cell of its entry in the table, so no
 * other thread writes, links or deletes a file of that name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/format/entry.h"
#include "mount/store/tier_identity_impl.h"
#include "mount/store/store_impl.h"

/* Write content and trailer to a new file, from its start. */
static int write_all(int fd, const void *data, size_t data_bytes,
	const void *trailer, size_t trailer_bytes)
{
	size_t off = 0, total = data_bytes + trailer_bytes;

	while (off < total) {
		size_t d = off < data_bytes ? off : data_bytes;
		struct iovec iov[2] = {
			{(char *)(uintptr_t)data + d, data_bytes - d},
			{(char *)(uintptr_t)trailer + (off - d),
				trailer_bytes - (off - d)},
		};
		ssize_t n = pwritev(fd, iov, 2, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		off += (size_t)n;
	}
	return 0;
}

static int fill_file(
	struct store *s, int fd, const struct entry_ref *ref, const void *data)
{
	size_t n = entry_trailer_bytes(ref->item_bytes);
	CLEANUP_FREE void *trailer = malloc(n);
	int rc;

	if (!trailer)
		return -ENOMEM;
	/* Set the mode separately, because the umask may take the group's
	 * permission away. */
	if (s->file_mode != 0600 && fchmod(fd, s->file_mode) < 0)
		return -errno;
	entry_make_trailer(trailer, ref->key, data, ref->item_bytes);
	rc = write_all(fd, data, (size_t)ref->item_bytes, trailer, n);
	/* Only start the write here. If the disk fails, a later read of the
	 * entry notices it. */
	if (rc == 0 && s->write_out)
		(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return rc;
}

/* Create a sub-directory again that was deleted while the mount uses it. */
static int remake_subdir(const struct tier *t, const char *path)
{
	const char sub[] = {path[0], path[1], '\0'};

	return tier_make_subdir(t, sub);
}

/* Convert an errno to -errno, and to -EOPNOTSUPP if it means that the file
 * system or the kernel cannot create or link unnamed files. */
static int no_unnamed(int code)
{
	switch (code) {
	case EACCES:
	case EINVAL:
	case EISDIR: /* the kernel does not know O_TMPFILE */
	case EOPNOTSUPP:
	case EPERM:
	case EXDEV:
		return -EOPNOTSUPP;
	default:
		return -code;
	}
}

/* Give the file its name. A file that has the name already is not in the table,
 * so it is replaced. */
static int link_file(const struct tier *t, int fd, const char *path)
{
	char proc[32];

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	for (int tries = 0; tries < 3; tries++) {
		int rc;

		if (linkat(AT_FDCWD, proc, t->fd, path, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno == EEXIST)
			rc = unlinkat(t->fd, path, 0) && errno != ENOENT
				? -errno
				: 0;
		else if (errno == ENOENT)
			rc = remake_subdir(t, path);
		else
			return no_unnamed(errno);
		if (rc)
			return rc;
	}
	return -EOPNOTSUPP; /* ENOENT again: /proc is not mounted */
}

static int write_unnamed(struct store *s, struct tier *t,
	const struct entry_ref *ref, const char *path, const void *data)
{
	CLEANUP_FD int fd =
		openat(t->fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return no_unnamed(errno);
	rc = fill_file(s, fd, ref, data);
	return rc ? rc : link_file(t, fd, path);
}

static int rename_file(const struct tier *t, const char *tmp, const char *path)
{
	int rc;

	if (renameat(t->fd, tmp, t->fd, path) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	rc = remake_subdir(t, path);
	if (rc)
		return rc;
	return renameat(t->fd, tmp, t->fd, path) < 0 ? -errno : 0;
}

static int open_tmp(const struct tier *t, const char *tmp)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(t->fd, tmp, flags, 0600);

	if (fd < 0 && errno == ENOENT && tier_make_subdir(t, TMP_DIR_NAME) == 0)
		fd = openat(t->fd, tmp, flags, 0600);
	return fd < 0 ? -errno : fd;
}

static int write_named(struct store *s, struct tier *t,
	const struct entry_ref *ref, const char *path, const void *data)
{
	char tmp[sizeof(TMP_DIR_NAME "/") + ENTRY_PATH_MAX];
	CLEANUP_FD int fd = -1;
	int rc;

	(void)snprintf(tmp, sizeof(tmp), TMP_DIR_NAME "/%s", path + 3);
	fd = open_tmp(t, tmp);
	if (fd < 0)
		return fd;
	rc = fill_file(s, fd, ref, data);
	if (rc == 0)
		rc = rename_file(t, tmp, path);
	if (rc)
		/* If this fails, the next start deletes the file */
		(void)unlinkat(t->fd, tmp, 0);
	return rc;
}

int store_write_entry(
	struct store *s, const struct entry_ref *ref, const void *data)
{
	struct tier *t = &s->tiers[ref->tier];
	char path[ENTRY_PATH_MAX];
	int rc = -EOPNOTSUPP;

	(void)entry_path(path, ref->key, ref->item_bytes);
	if (atomic_load_explicit(&t->tmpfile, memory_order_relaxed))
		rc = write_unnamed(s, t, ref, path, data);
	if (rc != -EOPNOTSUPP)
		return rc;
	atomic_store_explicit(&t->tmpfile, false, memory_order_relaxed);
	return write_named(s, t, ref, path, data);
}

/* SPDX-License-Identifier: MIT */
/*
 * The identity file and the lock of a tier directory. No state; called while
 * tiers are opened, checked and cleared.
 */
#include "mount/store/tier_identity_impl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/owned.h"

static const char first_line[] = "refrain tier 1\n";
static const char second_word[] = "dataset ";

/* Enough for an encoded source of PATH_MAX bytes. */
#define IDENTITY_MAX_BYTES ((size_t)16 << 10)

static bool plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || (c && strchr("/._-=,:+@~", c));
}

char *identity_encode(const char *source)
{
	char *text = malloc(strlen(source) * 3 + 1);
	char *p = text;

	if (!text)
		return NULL;
	for (; *source; source++) {
		unsigned char c = (unsigned char)*source;

		if (plain(c))
			*p++ = (char)c;
		else
			p += sprintf(p, "%%%02X", c);
	}
	*p = '\0';
	return text;
}

static bool encoded_right(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++) {
		if (plain((unsigned char)*text))
			continue;
		if (*text != '%' || !isxdigit((unsigned char)text[1]) ||
			!isxdigit((unsigned char)text[2]))
			return false;
		text += 2;
	}
	return true;
}

static int identity_parse(char *text, size_t size, char **encoded)
{
	const size_t first = sizeof(first_line) - 1;
	const size_t second = sizeof(second_word) - 1;

	if (size <= first + second || strlen(text) != size ||
		memcmp(text, first_line, first) != 0 ||
		memcmp(text + first, second_word, second) != 0 ||
		text[size - 1] != '\n')
		return -EBADMSG;
	text[size - 1] = '\0';
	text += first + second;
	if (!encoded_right(text))
		return -EBADMSG;
	*encoded = strdup(text);
	return *encoded ? 0 : -ENOMEM;
}

/* Read at most max bytes of a small file, and add a NUL. Returns the number of
 * bytes or -errno. */
static ssize_t read_small(int dir_fd, const char *name, char *text, size_t max)
{
	CLEANUP_FD int fd = openat(
		dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = owned_file(dir_fd, fd);
	if (n < 0)
		return n;
	n = read(fd, text, max);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

static int not_ours(const char *dir, const char *name, struct error *err)
{
	return error_set(err, -EPERM,
		"'%s/%s' is not a private file of the directory's owner, so "
		"another user may have put it there; delete it, or choose "
		"another cache directory",
		dir, name);
}

int identity_read(
	int dir_fd, const char *dir, char **encoded, struct error *err)
{
	CLEANUP_FREE char *text = malloc(IDENTITY_MAX_BYTES + 1);
	ssize_t n;
	int rc;

	if (!text)
		return error_set(err, -ENOMEM, "cannot read '%s': %m", dir);
	n = read_small(dir_fd, IDENTITY_NAME, text, IDENTITY_MAX_BYTES);
	if (n == -ENOENT)
		return 1;
	if (n == -EPERM)
		return not_ours(dir, IDENTITY_NAME, err);
	if (n < 0)
		return error_set(err, (int)n,
			"cannot read '%s/%s': %m; check its disk, or use "
			"another cache directory",
			dir, IDENTITY_NAME);
	rc = identity_parse(text, (size_t)n, encoded);
	if (rc == -EBADMSG)
		return error_set(err, rc,
			"cache directory '%s' is damaged or was made by "
			"another version of refrain; empty it with 'refrain "
			"clear %s'",
			dir, dir);
	return rc ? error_set(err, rc, "cannot read '%s': %m", dir) : 0;
}

bool identity_exists(int dir_fd)
{
	return faccessat(dir_fd, IDENTITY_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int write_identity_file(int dir_fd, const char *encoded)
{
	CLEANUP_FD int fd = -1;
	int n;

	(void)unlinkat(
		/* left by a start that was killed */
		dir_fd, IDENTITY_NEW_NAME, 0);
	fd = openat(dir_fd, IDENTITY_NEW_NAME,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	n = dprintf(fd, "%s%s%s\n", first_line, second_word, encoded);
	if (n < 0 || fsync(fd) < 0)
		return errno ? -errno : -EIO;
	if (renameat(dir_fd, IDENTITY_NEW_NAME, dir_fd, IDENTITY_NAME) < 0)
		return -errno;
	return 0;
}

int identity_write(
	int dir_fd, const char *dir, const char *encoded, struct error *err)
{
	int rc = -ENAMETOOLONG;

	if (strlen(encoded) + sizeof(first_line) + sizeof(second_word) <
		IDENTITY_MAX_BYTES)
		rc = write_identity_file(dir_fd, encoded);
	if (rc == 0)
		return 0;
	/* The file may not exist */
	(void)unlinkat(dir_fd, IDENTITY_NEW_NAME, 0);
	return error_set(err, rc,
		"cannot write '%s/%s': %m; make the directory writable, or "
		"use another cache directory",
		dir, IDENTITY_NAME);
}

/* Check that the locked file still has its name, because `refrain clear`
 * deletes the file. Returns 0, -EAGAIN if it does not, or another -errno. */
static int lock_is_current(int dir_fd, int fd)
{
	struct stat named, locked;

	if (fstat(fd, &locked) < 0)
		return -errno;
	if (fstatat(dir_fd, LOCK_FILE_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	return named.st_ino == locked.st_ino && named.st_dev == locked.st_dev
		? 0
		: -EAGAIN;
}

static int lock_once(int dir_fd, int *out)
{
	CLEANUP_FD int fd = openat(dir_fd, LOCK_FILE_NAME,
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	/* Check this before the content is changed: the name may be a link to
	 * another file. */
	rc = owned_file(dir_fd, fd);
	if (rc < 0)
		return rc;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	rc = lock_is_current(dir_fd, fd);
	if (rc)
		return rc;
	if (ftruncate(fd, 0) == 0)
		/* The number is only for people who read the file */
		(void)dprintf(fd, "%ld\n", (long)getpid());
	*out = steal_fd(&fd);
	return 0;
}

/* Lock the directory itself, too: a lock file may be deleted while a mount
 * holds its lock, but a directory in use cannot be deleted. systemd-tmpfiles
 * also skips a locked directory. */
static int lock_dir(int dir_fd)
{
	if (flock(dir_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	/* NFS and some other file systems cannot lock directories. */
	return errno == EWOULDBLOCK ? -EBUSY : 0;
}

int identity_lock(int dir_fd, const char *dir, bool *made, struct error *err)
{
	char pid[32] = "";
	int fd = -1, rc;

	*made = faccessat(dir_fd, LOCK_FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) <
		0;
	rc = lock_dir(dir_fd);
	if (rc == 0)
		do
			rc = lock_once(dir_fd, &fd);
		while (rc == -EAGAIN);
	if (rc == 0)
		return fd;
	if (rc == -EPERM)
		return not_ours(dir, LOCK_FILE_NAME, err);
	if (rc != -EBUSY)
		return error_set(err, rc,
			"cannot lock '%s/%s': %m; make the directory "
			"writable, or use another cache directory",
			dir, LOCK_FILE_NAME);
	if (read_small(dir_fd, LOCK_FILE_NAME, pid, sizeof(pid) - 1) < 0)
		pid[0] = '\0';
	pid[strspn(pid, "0123456789")] = '\0';
	return error_set(err, rc,
		"cache directory '%s' is in use by another mount (process %s); "
		"unmount that first or use another directory",
		dir, *pid ? pid : "unknown");
}

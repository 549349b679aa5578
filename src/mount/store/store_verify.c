/* SPDX-License-Identifier: MIT */
/*
 * Checks a tier directory: reads every entry and hashes it again, even while a
 * mount uses the tier. Changes nothing. Each call uses one thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/format/entry.h"
#include "mount/store/tier_identity_impl.h"
#include "mount/store/store_impl.h"

#define PIECE_BYTES ((size_t)1 << 20) /* a multiple of a block */

struct check {
	const char *dir;
	int dir_fd;
	store_bad_fn *bad;
	store_progress_fn *progress;
	void *arg;
	unsigned char *piece;	/* buffer of PIECE_BYTES */
	unsigned char *trailer; /* buffer of ENTRY_TRAILER_MAX_BYTES */
	uint64_t checked, checked_bytes;
	int64_t damaged;
};

static const char *check_content(
	struct check *c, int fd, struct hash128 key, uint64_t item_bytes)
{
	for (uint64_t off = 0; off < item_bytes; off += PIECE_BYTES) {
		uint64_t left = item_bytes - off;
		size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		ssize_t got = store_pread(fd, c->piece, n, 0, off);

		if (got < 0)
			return strerror((int)-got);
		if ((size_t)got != n)
			return "cut";
		if (!entry_check_blocks(c->trailer, key, c->piece, n,
			    off / ENTRY_BLOCK_BYTES))
			return "content differs from its checksum";
	}
	return NULL;
}

static const char *check_file(
	struct check *c, int fd, struct hash128 key, uint64_t item_bytes)
{
	size_t n = entry_trailer_bytes(item_bytes);
	const char *why;
	struct stat st;
	ssize_t got;

	if (fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a regular file";
	if ((uint64_t)st.st_size != item_bytes + n)
		return "wrong file length";
	got = store_pread(fd, c->trailer, n, 0, item_bytes);
	if (got < 0)
		return strerror((int)-got);
	if ((size_t)got != n)
		return "cut";
	why = entry_check_trailer(c->trailer, key, item_bytes, true);
	return why ? why : check_content(c, fd, key, item_bytes);
}

static void check_name(struct check *c, unsigned int sub, const char *name)
{
	char path[300];
	CLEANUP_FD int fd = -1;
	const char *why = "not the name of an entry";
	struct hash128 key;
	uint64_t item_bytes = 0;

	(void)snprintf(path, sizeof(path), "%02x/%s", sub & 0xff, name);
	if (entry_parse_name(name, sub, &key, &item_bytes)) {
		fd = openat(c->dir_fd, path,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT)
			return; /* deleted since the directory was read */
		why = fd < 0 ? strerror(errno)
			     : check_file(c, fd, key, item_bytes);
	}
	c->checked++;
	c->checked_bytes += item_bytes;
	if (why) {
		char full[sizeof(path) + 4096];

		(void)snprintf(full, sizeof(full), "%s/%s", c->dir, path);
		c->damaged++;
		c->bad(c->arg, full, why);
	}
	if (c->progress)
		c->progress(c->arg, c->checked, c->checked_bytes);
}

static int check_subdir(struct check *c, unsigned int sub)
{
	char name[3];
	CLEANUP_DIR DIR *dir = NULL;
	const struct dirent *e;

	(void)snprintf(name, sizeof(name), "%02x", sub & 0xff);
	dir = tier_open_subdir(c->dir_fd, name);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (errno = 0; (e = readdir(dir)); errno = 0)
		if (!name_is_dots(e->d_name))
			check_name(c, sub, e->d_name);
	return -errno;
}

static int check_one_tier(struct check *c, struct error *err)
{
	CLEANUP_FREE char *encoded = NULL;
	int rc = identity_read(c->dir_fd, c->dir, &encoded, err);

	if (rc > 0)
		rc = identity_check_remains(c->dir_fd, c->dir, err);
	for (unsigned int sub = 0; rc == 0 && sub < TIER_SUBDIRS; sub++) {
		rc = check_subdir(c, sub);
		if (rc)
			error_set(err, rc, "cannot list '%s/%02x': %m", c->dir,
				sub);
	}
	return rc;
}

int64_t store_verify_dir(const char *dir, store_bad_fn *bad,
	store_progress_fn *progress, void *arg, uint64_t *checked,
	struct error *err)
{
	CLEANUP_FREE unsigned char *piece = malloc(PIECE_BYTES);
	CLEANUP_FREE unsigned char *trailer = malloc(ENTRY_TRAILER_MAX_BYTES);
	CLEANUP_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct check c = {
		.dir = dir,
		.dir_fd = fd,
		.bad = bad,
		.progress = progress,
		.arg = arg,
		.piece = piece,
		.trailer = trailer,
	};
	int rc;

	*checked = 0;
	if (fd < 0)
		return error_set(err, -errno,
			"cannot open cache directory '%s': %m", dir);
	if (!piece || !trailer)
		return error_set(err, -ENOMEM, "cannot check '%s': %m", dir);
	rc = check_one_tier(&c, err);
	*checked = c.checked;
	return rc ? rc : c.damaged;
}

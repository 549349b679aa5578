/* SPDX-License-Identifier: MIT */
/*
 * One tier: opens its directory and keeps its budget. Owns the descriptor and
 * the lock of the directory.
 */
#include "mount/store/tier_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/feature.h"
#include "common/base/lock.h"
#include "common/base/size.h"
#include "common/format/entry.h"
#include "mount/store/tier_identity_impl.h"

#define TIER_BLOCK_BYTES UINT64_C(4096)
/* Time between two writes to a tier whose last write failed. */
#define TIER_RETRY_NS NS_PER_S

static int tier_open_dir(struct tier *t, struct error *err)
{
	/* A link in a cache root would lead out of it. */
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC |
		(t->root_fd >= 0 ? O_NOFOLLOW : 0);
	int rc;

	t->fd = open(t->dir, flags);
	if (t->fd < 0 && errno == ENOENT) {
		if (mkdir(t->dir, 0700) < 0)
			return error_set(err, -errno,
				"cannot create cache directory '%s': %m; "
				"create its parent or choose another",
				t->dir);
		t->made_dir = true;
		t->fd = open(t->dir, flags);
	}
	if (t->fd >= 0)
		return 0;
	rc = -errno;
	if (rc == -ENOTDIR)
		return error_set(err, rc,
			"cache '%s' is not a directory; choose one, or a name "
			"that does not exist",
			t->dir);
	return error_set(err, rc,
		"cannot open cache directory '%s': %m; choose one that you can "
		"write to",
		t->dir);
}

static int disk_failed(
	const struct tier *t, int rc, const char *what, struct error *err)
{
	return error_set(err, rc,
		"cannot %s '%s': %m; check its disk, or use another cache "
		"directory",
		what, t->dir);
}

static int check_dir(struct tier *t, struct error *err)
{
	struct statfs fs;
	struct stat st;

	if (fstat(t->fd, &st) < 0)
		return disk_failed(t, -errno, "stat", err);
	if (faccessat(t->fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return error_set(err, -errno,
			"cannot write to cache directory '%s': %m; choose one "
			"that you can write to",
			t->dir);
	if ((st.st_mode & 0022) && (st.st_mode & S_ISVTX))
		return error_set(err, -EPERM,
			"other users can write to '%s'; use a directory of "
			"your own in it, such as '%s/refrain'",
			t->dir, strcmp(t->dir, "/") == 0 ? "" : t->dir);
	/* Refuse the directory of another user, who could put links in place of
	 * entries. */
	if (st.st_uid != geteuid())
		return error_set(err, -EPERM,
			"cache directory '%s' belongs to user %u; choose one "
			"of your own",
			t->dir, (unsigned int)st.st_uid);
	if (st.st_mode & 0022)
		return error_set(err, -EPERM,
			"other users can write to cache directory '%s' and "
			"could plant entries; run 'chmod go-w %s', or choose "
			"another",
			t->dir, t->dir);
	t->uid = st.st_uid;
	t->dev = st.st_dev;
	t->ino = st.st_ino;
	t->in_memory = fstatfs(t->fd, &fs) == 0 &&
		(fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
	return 0;
}

/* Returns the unit in which a file of the tier takes space. On a tmpfs with
 * huge=always, it is a huge page, which only the size of I/O of a new file
 * shows. */
static uint64_t space_unit(const struct tier *t, uint64_t block_bytes)
{
	CLEANUP_FD int fd = t->in_memory
		? openat(t->fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600)
		: -1;
	struct stat st;

	if (block_bytes < 512 || block_bytes > 65536)
		block_bytes = TIER_BLOCK_BYTES;
	if (fd < 0 || fstat(fd, &st) < 0 ||
		(uint64_t)st.st_blksize < block_bytes)
		return block_bytes;
	return (uint64_t)st.st_blksize;
}

/* `text` is NULL for a tier in a cache root, whose capacity is its grant. */
static int tier_check_size(struct tier *t, const char *text, struct error *err)
{
	struct statvfs fs;
	uint64_t whole;
	int rc;

	if (fstatvfs(t->fd, &fs) < 0)
		return disk_failed(t, -errno, "statfs", err);
	/* A tmpfs without a limit reports 0. */
	whole = (uint64_t)fs.f_blocks * fs.f_frsize;
	rc = text ? size_parse(text, whole, &t->capacity_bytes, err) : 0;
	if (rc)
		return error_wrap(err, rc, "cache '%s'", t->dir);
	if (text && t->capacity_bytes == 0)
		return error_set(err, -EINVAL,
			"size of cache '%s' is zero; give some bytes, as in "
			"'%s:10G'",
			t->dir, t->dir);
	if (text && whole && t->capacity_bytes > whole)
		return error_set(err, -EFBIG,
			"size %s of cache '%s' is larger than its file system; "
			"give less, or a percentage as in '%s:80%%'",
			text, t->dir, t->dir);
	t->block_bytes = space_unit(t, fs.f_frsize);
	return 0;
}

/* Check that the directory is empty or a tier of the dataset, with or without
 * its identity file. */
static int check_identity(
	struct tier *t, const char *dataset, struct error *err)
{
	CLEANUP_FREE char *found = NULL;
	CLEANUP_FREE char *wanted = identity_encode(dataset);
	char name[512] = "";
	int rc;

	if (!wanted)
		return error_set(err, -ENOMEM, "cannot open '%s': %m", t->dir);
	rc = identity_read(t->fd, t->dir, &found, err);
	if (rc < 0)
		return rc;
	if (rc == 0 && strcmp(found, wanted) != 0)
		return error_set(err, -EEXIST,
			"cache directory '%s' belongs to dataset '%.300s'; "
			"use another, or empty it with 'refrain clear %s'",
			t->dir, found, t->dir);
	if (rc == 0)
		return 0;
	rc = identity_remains(t->fd, name, sizeof(name));
	if (rc < 0)
		return disk_failed(t, rc, "list", err);
	t->lost_identity = rc == REMAINS_TIER;
	if (rc == REMAINS_FOREIGN)
		return error_set(err, -ENOTEMPTY,
			"directory '%s' is neither a cache nor empty (it "
			"contains '%s'); choose an empty one",
			t->dir, name);
	return 0;
}

static int open_and_lock(struct tier *t, const struct tier_config *config,
	const char *dataset, struct error *err)
{
	int rc = tier_open_dir(t, err);

	if (rc == 0)
		rc = check_dir(t, err);
	if (rc == 0)
		rc = tier_check_size(
			t, config->root ? NULL : config->size, err);
	if (rc == 0)
		rc = tier_keep_free(t, config->keep_free, err);
	if (rc == 0)
		rc = check_identity(t, dataset, err);
	if (rc)
		return rc;
	t->lock_fd = identity_lock(t->fd, t->dir, &t->made_lock, err);
	if (t->lock_fd < 0) {
		t->made_lock = false;
		return t->lock_fd;
	}
	/* Check again with the lock held, because another daemon may have
	 * created a tier here in the meantime. */
	return check_identity(t, dataset, err);
}

int tier_open(struct tier *t, const struct tier_config *config,
	const char *dataset, gid_t group, struct error *err)
{
	CLEANUP_FD int root_lock = -1;
	int rc = 0;

	*t = (struct tier){.fd = -1,
		.lock_fd = -1,
		.root_fd = -1,
		.group = group,
		.capacity_entries = UINT64_MAX,
		.room_bytes = UINT64_MAX,
		.room_inodes = UINT64_MAX};
	atomic_init(&t->tmpfile, feature_enabled("tmpfile"));
	lock_init(&t->lock, RANK_TIER);
	t->dir = strdup(config->dir);
	if (!t->dir)
		rc = error_set(err, -ENOMEM, "cannot open a cache: %m");
	else if (config->root)
		/* Locked until the tier is, so that nobody drops it. */
		rc = root_lock = tier_root_begin(t, config, err);
	if (rc >= 0)
		rc = open_and_lock(t, config, dataset, err);
	if (rc) {
		/* tier_close() locks the root itself. */
		if (root_lock >= 0)
			(void)close(steal_fd(&root_lock));
		tier_close(t, true);
	}
	return rc;
}

/* Set modes separately from mkdir(), which applies the umask. */
static int set_modes(const struct tier *t, int fd)
{
	if (t->group == (gid_t)-1)
		return fchmod(fd, 0700) < 0 ? -errno : 0;
	if (fchown(fd, (uid_t)-1, t->group) < 0 || fchmod(fd, 02750) < 0)
		return -errno;
	return 0;
}

/* Are owner, mode and group of a sub-directory right? This saves time at each
 * start: one stat() instead of five calls for each of 256 directories. */
static bool subdir_right(const struct tier *t, const char *name)
{
	bool grouped = t->group != (gid_t)-1;
	struct stat st;

	return fstatat(t->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
		(st.st_mode & 07777) == (grouped ? 02750 : 0700) &&
		(!grouped || st.st_gid == t->group);
}

int tier_make_subdir(const struct tier *t, const char *name)
{
	CLEANUP_FD int fd = -1;
	struct stat st;

	if (subdir_right(t, name))
		return 0;
	if (mkdirat(t->fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(
		t->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	return set_modes(t, fd);
}

/* Check that the group can enter the directory. Its mode is not changed,
 * because its owner has chosen it. */
static int check_group(const struct tier *t, struct error *err)
{
	struct stat st;

	if (t->group == (gid_t)-1)
		return 0;
	if (fstat(t->fd, &st) < 0)
		return -errno;
	if ((st.st_mode & 0001) ||
		(st.st_gid == t->group && (st.st_mode & 0010)))
		return 0;
	return error_set(err, -EACCES,
		"the group cannot enter cache directory '%s'; run 'chgrp "
		"GROUP %s && chmod 2750 %s', or give one that does not exist "
		"yet",
		t->dir, t->dir, t->dir);
}

int tier_make(struct tier *t, const char *dataset, struct error *err)
{
	CLEANUP_FREE char *found = NULL;
	CLEANUP_FREE char *encoded = identity_encode(dataset);
	char name[] = "00";
	int rc;

	if (!encoded)
		return error_set(err, -ENOMEM, "cannot make '%s': %m", t->dir);
	rc = t->made_dir ? set_modes(t, t->fd) : check_group(t, err);
	if (rc == -EACCES)
		return rc;
	if (rc)
		return error_set(err, rc,
			"cannot set mode and group of cache directory '%s': "
			"%m; give a --group that you belong to",
			t->dir);
	rc = identity_read(t->fd, t->dir, &found, err);
	if (rc > 0)
		rc = identity_write(t->fd, t->dir, encoded, err);
	if (rc)
		return rc;
	rc = tier_make_subdir(t, TMP_DIR_NAME);
	for (unsigned int i = 0; rc == 0 && i < TIER_SUBDIRS; i++) {
		(void)snprintf(name, sizeof(name), "%02x", i & 0xff);
		rc = tier_make_subdir(t, name);
	}
	if (rc)
		return error_set(err, rc,
			"cannot create sub-directories of cache '%s': %m; "
			"empty it with 'refrain clear %s' or choose another",
			t->dir, t->dir);
	return 0;
}

void tier_close(struct tier *t, bool undo)
{
	if (undo)
		tier_root_undo(t);
	if (undo && t->made_lock)
		/* a failure does no harm */
		(void)unlinkat(t->fd, LOCK_FILE_NAME, 0);
	if (undo && t->made_dir)
		(void)rmdir(t->dir); /* fails if the directory is not empty */
	if (t->lock_fd >= 0)
		/* nothing was written by this descriptor */
		(void)close(t->lock_fd);
	if (t->fd >= 0)
		/* nothing was written by this descriptor */
		(void)close(t->fd);
	if (t->root_fd >= 0)
		/* nothing was written by this descriptor */
		(void)close(t->root_fd);
	(void)pthread_mutex_destroy(&t->lock); /* no thread uses it */
	free(t->dir);
	*t = (struct tier){.fd = -1, .lock_fd = -1, .root_fd = -1};
}

uint64_t tier_charge_of(const struct tier *t, uint64_t item_bytes)
{
	uint64_t bytes = item_bytes + entry_trailer_bytes(item_bytes);

	return (bytes + t->block_bytes - 1) / t->block_bytes * t->block_bytes;
}

/* Has the tier room for an item? Notes an item that needs a larger grant. */
static bool has_room(struct tier *t, uint64_t charge_bytes)
{
	uint64_t taken = t->charged_bytes + t->reserved_bytes;

	ASSERT_HELD(&t->lock);
	if (taken + charge_bytes > t->capacity_bytes) {
		if (charge_bytes > t->refused_bytes &&
			taken + charge_bytes <= t->grant_max_bytes)
			t->refused_bytes = charge_bytes;
		return false;
	}
	return !t->closed &&
		t->entries + t->reserved_items < t->capacity_entries &&
		charge_bytes <= t->room_bytes && t->room_inodes > 0;
}

bool tier_fits(struct tier *t, uint64_t charge_bytes)
{
	LOCK_SCOPE(&t->lock);

	return has_room(t, charge_bytes);
}

bool tier_grows(struct tier *t, uint64_t charge_bytes)
{
	LOCK_SCOPE(&t->lock);

	return t->root_fd >= 0 && !t->grant_last && !t->closed &&
		t->charged_bytes + t->reserved_bytes + charge_bytes <=
		t->grant_max_bytes &&
		charge_bytes <= t->room_bytes && t->room_inodes > 0;
}

static bool store_tier_reserve(struct tier *t, uint64_t charge_bytes)
{
	ASSERT_HELD(&t->lock);
	if (!has_room(t, charge_bytes))
		return false;
	t->reserved_bytes += charge_bytes;
	t->reserved_items++;
	if (t->room_bytes != UINT64_MAX)
		t->room_bytes -= charge_bytes;
	if (t->room_inodes != UINT64_MAX)
		t->room_inodes--;
	return true;
}

int tier_resize(struct tier *t, uint64_t capacity_bytes)
{
	LOCK_SCOPE(&t->lock);

	if (capacity_bytes < t->charged_bytes + t->reserved_bytes)
		return -ENOSPC;
	t->capacity_bytes = capacity_bytes;
	return 0;
}

bool tier_reserve(struct tier *t, uint64_t charge_bytes)
{
	LOCK_SCOPE(&t->lock);

	return store_tier_reserve(t, charge_bytes);
}

bool tier_reserve_well(struct tier *t, uint64_t charge_bytes)
{
	LOCK_SCOPE(&t->lock);

	if (t->retry_ns > clock_now_ns() ||
		!store_tier_reserve(t, charge_bytes))
		return false;
	/* This reservation is the next attempt; the one after it must wait for
	 * TIER_RETRY_NS. */
	if (t->retry_ns)
		t->retry_ns = clock_now_ns() + TIER_RETRY_NS;
	return true;
}

bool tier_failed(struct tier *t)
{
	bool worked;

	LOCK_SCOPE(&t->lock);
	worked = t->retry_ns == 0;
	t->retry_ns = clock_now_ns() + TIER_RETRY_NS;
	return worked;
}

bool tier_may_exchange(struct tier *t, uint64_t old_bytes, uint64_t item_bytes)
{
	uint64_t taken;

	LOCK_SCOPE(&t->lock);
	taken = t->charged_bytes + t->reserved_bytes -
		tier_charge_of(t, old_bytes) + tier_charge_of(t, item_bytes);
	return !t->closed && taken <= t->capacity_bytes;
}

void tier_unreserve(struct tier *t, uint64_t charge_bytes)
{
	LOCK_SCOPE(&t->lock);
	assert(t->reserved_bytes >= charge_bytes && t->reserved_items > 0);
	t->reserved_bytes -= charge_bytes;
	t->reserved_items--;
}

bool tier_commit(struct tier *t, uint64_t item_bytes)
{
	uint64_t charge_bytes = tier_charge_of(t, item_bytes);
	bool failed;

	LOCK_SCOPE(&t->lock);
	assert(t->reserved_bytes >= charge_bytes && t->reserved_items > 0);
	t->reserved_bytes -= charge_bytes;
	t->reserved_items--;
	t->charged_bytes += charge_bytes;
	t->resident_bytes += item_bytes;
	t->entries++;
	failed = t->retry_ns != 0;
	t->retry_ns = 0;
	return failed;
}

void tier_count_error(struct tier *t)
{
	LOCK_SCOPE(&t->lock);
	t->errors++;
}

bool tier_was_deleted(const struct tier *t)
{
	struct stat st;

	return fstat(t->fd, &st) == 0 && st.st_nlink == 0;
}

/* Is the tier nearly full? A single refused item does not show that, because
 * items differ in size. */
static bool nearly_full(const struct tier *t)
{
	ASSERT_HELD(&t->lock);
	if (t->root_fd >= 0 && !t->grant_last)
		return false;
	return t->charged_bytes + t->reserved_bytes >=
		t->capacity_bytes / 10 * 9;
}

bool tier_note_full(struct tier *t)
{
	LOCK_SCOPE(&t->lock);
	if (t->full || t->closed || !nearly_full(t))
		return false;
	t->full = true;
	return true;
}

bool tier_note_room(struct tier *t)
{
	LOCK_SCOPE(&t->lock);
	if (!t->full || nearly_full(t))
		return false;
	t->full = false;
	return true;
}

void tier_charge(struct tier *t, uint64_t item_bytes)
{
	LOCK_SCOPE(&t->lock);
	t->charged_bytes += tier_charge_of(t, item_bytes);
	t->resident_bytes += item_bytes;
	t->entries++;
}

void tier_uncharge(struct tier *t, uint64_t item_bytes)
{
	LOCK_SCOPE(&t->lock);
	assert(t->entries && t->resident_bytes >= item_bytes);
	t->charged_bytes -= tier_charge_of(t, item_bytes);
	t->resident_bytes -= item_bytes;
	t->entries--;
}

void tier_close_admission(struct tier *t)
{
	LOCK_SCOPE(&t->lock);
	t->closed = true;
}

/* Has the directory been deleted, moved or replaced? */
static bool tier_is_gone(const struct tier *t)
{
	struct stat st;

	if (stat(t->dir, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != t->dev || st.st_ino != t->ino;
}

void tier_status(struct tier *t, struct tier_status *status)
{
	bool gone = tier_is_gone(t);

	LOCK_SCOPE(&t->lock);
	*status = (struct tier_status){
		.in_memory = t->in_memory,
		.block_bytes = t->block_bytes,
		.gone = gone,
		.errors = t->errors,
		.dir = t->dir,
		.capacity_bytes = t->capacity_bytes,
		.used_bytes = t->charged_bytes,
		.reserved_bytes = t->reserved_bytes,
		.resident_bytes = t->resident_bytes,
		.entries = t->entries,
	};
}

/* SPDX-License-Identifier: MIT */
/*
 * A tier in a cache root, whose capacity is its grant (grants.h), and the space
 * that a tier keeps free for others. The store's background thread calls
 * tier_watch() many times a second: it asks for a larger grant before the tier
 * needs it, and looks at the free space of the disk, so that no admission waits
 * for a disk. Each tier is watched by one thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/size.h"
#include "mount/store/grants.h"
#include "mount/store/tier_identity_impl.h"
#include "mount/store/tier_impl.h"

/* A grant grows by this share of the root. */
#define GRANT_STEP 16u
/* Time until the next request to a root without space, and time until the lock
 * file is touched again. The mtime of the lock file shows when the tier was
 * last used. */
#define GRANT_AGAIN_NS NS_PER_S
#define TOUCH_NS (30 * NS_PER_S)
/* The time until a tier looks again whether it still has its grant. */
#define LOOK_NS NS_PER_S
/* How long a mount waits until the other mounts have looked. */
#define LOST_WAIT_NS (5 * NS_PER_S)
#define LOST_TRY_NS (50 * NS_PER_MS)

static int root_failed(int rc, const char *root, struct error *err)
{
	if (rc == -EBADMSG)
		return error_set(err, rc,
			"the grants of cache root '%s' are damaged or of "
			"another version; delete '%s/refrain-grants', and the "
			"next mount counts anew what the caches use",
			root, root);
	if (rc == -EAGAIN)
		return error_set(err, rc,
			"a cache in '%s' is in use but has no grant; unmount "
			"it, or try again",
			root);
	return error_set(err, rc,
		"cannot use cache root '%s': %m; choose a directory of your "
		"own that you can write to",
		root);
}

static int root_open(struct tier *t, const char *root, struct error *err)
{
	struct stat st;

	if (mkdir(root, 0700) < 0 && errno != EEXIST)
		return root_failed(-errno, root, err);
	t->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root_fd < 0 || fstat(t->root_fd, &st) < 0)
		return root_failed(-errno, root, err);
	if (st.st_uid != geteuid() || (st.st_mode & 0022))
		return error_set(err, -EPERM,
			"cache root '%s' belongs to another user, or others "
			"can write to it; choose a directory of your own",
			root);
	return 0;
}

/* Compute the size of the root, in bytes and inodes. */
static int root_size(const struct tier *t, const struct tier_config *config,
	struct grants *g, struct error *err)
{
	struct statvfs fs;
	uint64_t whole;
	int rc = 0;

	if (fstatvfs(t->root_fd, &fs) < 0)
		return root_failed(-errno, config->root, err);
	whole = (uint64_t)fs.f_blocks * fs.f_frsize;
	if (config->size)
		rc = size_parse(config->size, whole, &g->bytes, err);
	else if (g->bytes == 0)
		g->bytes = whole / 10 * 9;
	if (rc < 0)
		return rc;
	if (g->bytes == 0 || (whole && g->bytes > whole))
		return error_set(err, -EFBIG,
			"cache root '%s' must have a size, which is not larger "
			"than its file system; give one, as in '%s:80%%'",
			config->root, config->root);
	/* The root gets the same share of the inodes as of the bytes. */
	g->inodes = fs.f_files && whole
		? (uint64_t)((double)fs.f_files * (double)g->bytes /
			  (double)whole)
		: 0;
	return 0;
}

/* Returns the name of the tier's grant: that of its directory in the root. */
static const char *name_in_root(const struct tier *t)
{
	return strrchr(t->dir, '/') + 1;
}

/* Let the grant grow by a step, or by `more` bytes if they are more than that,
 * if the root has space. */
static bool grant_grow(struct grants *g, struct grant *one, uint64_t more)
{
	uint64_t bytes = g->bytes / GRANT_STEP, inodes = g->inodes / GRANT_STEP;
	uint64_t left = grants_left_bytes(g),
		 left_inodes = grants_left_inodes(g);

	bytes = bytes > more ? bytes : more;
	bytes = bytes < left ? bytes : left;
	inodes = inodes < left_inodes ? inodes : left_inodes;
	one->bytes += bytes;
	one->inodes += inodes;
	return bytes > 0 && (inodes > 0 || g->inodes == 0);
}

/* Use the grant from now on. */
static void grant_take(
	struct tier *t, const struct grants *g, const struct grant *one)
{
	LOCK_SCOPE(&t->lock);
	t->capacity_bytes = one->bytes;
	t->grant_max_bytes = one->bytes + grants_left_bytes(g);
	t->root_bytes = g->bytes;
	t->root_inodes = g->inodes;
	t->refused_bytes = 0;
	t->step_bytes = g->bytes / GRANT_STEP;
	t->step_inodes = g->inodes / GRANT_STEP;
	t->capacity_entries = g->inodes == 0 ? UINT64_MAX
		: one->inodes > TIER_INODES  ? one->inodes - TIER_INODES
					     : 0;
}

/* Set the size of the root, which must be enough for all grants. The number of
 * inodes of some file systems changes, so it counts only if the size is a new
 * one that is smaller. */
static int root_resize(const struct tier *t, const struct tier_config *config,
	struct grants *g, struct error *err)
{
	uint64_t before = g->bytes;
	struct grants_sum sum = grants_sum(g);
	int rc = root_size(t, config, g, err);

	if (rc < 0)
		return rc;
	if (sum.bytes > g->bytes)
		return error_set(err, -ENOSPC,
			"the caches in '%s' have grants of %llu bytes, more "
			"than its new size; give a larger size, or drop some "
			"with 'refrain caches %s --drop-unused'",
			config->root, (unsigned long long)sum.bytes,
			config->root);
	if (g->bytes < before && g->inodes && sum.inodes > g->inodes)
		return error_set(err, -ENOSPC,
			"the caches in '%s' have grants of %llu inodes, more "
			"than the %llu of its new size; give a larger size, or "
			"drop some with 'refrain caches %s --drop-unused'",
			config->root, (unsigned long long)sum.inodes,
			(unsigned long long)g->inodes, config->root);
	return 0;
}

static int grant_begin(struct tier *t, const struct tier_config *config,
	const char *name, struct grants *g, struct error *err)
{
	struct grant *one;
	bool known, made;
	int rc = grants_read(t->root_fd, g);

	if (rc == 0)
		rc = grants_find_lost(t->root_fd, g, "");
	if (rc < 0)
		return root_failed(rc, config->root, err);
	rc = root_resize(t, config, g, err);
	if (rc < 0)
		return rc;
	one = grants_find(g, name);
	made = !one;
	one = one ? one : grants_add(g, name);
	if (!one)
		return error_set(err, -ENOSPC,
			"cache root '%s' has %u datasets already; drop some "
			"with 'refrain caches'",
			config->root, g->n);
	/* On a full disk this write fails, but the tier still has the grant
	 * from before. */
	known = one->bytes > 0;
	t->made_grant = made;
	if (!known)
		(void)grant_grow(g, one, 0);
	rc = grants_write(t->root_fd, g);
	if (rc < 0 && !(known && (rc == -ENOSPC || rc == -EDQUOT)))
		return root_failed(rc, config->root, err);
	grant_take(t, g, one);
	return 0;
}

/* Lock the root and get a grant. Returns as tier_root_begin(); -EAGAIN: a tier
 * in use has no grant. */
static int root_try(struct tier *t, const struct tier_config *config,
	struct grants *g, struct error *err)
{
	CLEANUP_FD int lock = grants_lock(t->root_fd);
	int rc;

	if (lock == -EBUSY)
		return error_set(err, -EBUSY,
			"another process keeps the lock of cache root '%s'; "
			"end it, or try again",
			config->root);
	if (lock < 0)
		return root_failed(lock, config->root, err);
	rc = grant_begin(t, config, name_in_root(t), g, err);
	return rc < 0 ? rc : steal_fd(&lock);
}

int tier_root_begin(
	struct tier *t, const struct tier_config *config, struct error *err)
{
	const struct timespec wait = {.tv_nsec = LOST_TRY_NS};
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	uint64_t until_ns = clock_now_ns() + LOST_WAIT_NS;
	int rc = root_open(t, config->root, err);

	if (rc < 0)
		return rc;
	if (!g)
		return error_set(err, -ENOMEM, "cannot open a cache: %m");
	while ((rc = root_try(t, config, g, err)) == -EAGAIN &&
		clock_now_ns() < until_ns)
		(void)nanosleep(&wait, NULL); /* an early return is harmless */
	return rc;
}

/* Returns the free space of a disk without the space that must stay free. */
static uint64_t space_beyond(uint64_t free, uint64_t keep)
{
	return free > keep ? free - keep : 0;
}

static void watch_space(struct tier *t)
{
	struct statvfs fs;

	if (t->keep_bytes == 0 || fstatvfs(t->fd, &fs) < 0)
		return;
	LOCK_SCOPE(&t->lock);
	/* No reserved byte may have been written yet. */
	t->room_bytes = space_beyond((uint64_t)fs.f_bavail * fs.f_frsize,
		t->keep_bytes + t->reserved_bytes);
	t->room_inodes = fs.f_files == 0
		? UINT64_MAX
		: space_beyond(fs.f_favail, t->keep_inodes + t->reserved_items);
}

int tier_keep_free(struct tier *t, const char *text, struct error *err)
{
	struct statvfs fs;
	uint64_t whole;
	int rc;

	if (!text)
		return 0;
	if (fstatvfs(t->fd, &fs) < 0)
		return error_set(
			err, -errno, "cannot look at cache '%s': %m", t->dir);
	whole = (uint64_t)fs.f_blocks * fs.f_frsize;
	rc = size_parse(text, whole, &t->keep_bytes, err);
	if (rc < 0)
		return error_wrap(err, rc, "--keep-free");
	if (whole > 0)
		t->keep_inodes = (uint64_t)((double)fs.f_files *
			(double)t->keep_bytes / (double)whole);
	watch_space(t);
	return 0;
}

/* Why a tier needs a larger grant. */
struct grant_want {
	bool step;	     /* what is left is less than a step */
	uint64_t item_bytes; /* bytes that a refused item lacks */
};

static bool grant_wanted(struct tier *t, struct grant_want *want)
{
	uint64_t taken, items;

	LOCK_SCOPE(&t->lock);
	taken = t->charged_bytes + t->reserved_bytes;
	items = t->entries + t->reserved_items;
	want->step = taken + t->step_bytes > t->capacity_bytes ||
		(t->capacity_entries != UINT64_MAX &&
			items + t->step_inodes >= t->capacity_entries);
	want->item_bytes = t->refused_bytes > 0 &&
			taken + t->refused_bytes > t->capacity_bytes
		? taken + t->refused_bytes - t->capacity_bytes
		: 0;
	return want->step || want->item_bytes > 0;
}

/* Note how much the root has left. An item that does not fit must not take the
 * space that other tiers need. */
static void grant_note_left(
	struct tier *t, const struct grants *g, struct grant_want *want)
{
	uint64_t left = grants_left_bytes(g);

	LOCK_SCOPE(&t->lock);
	t->grant_max_bytes = t->capacity_bytes + left;
	if (want->item_bytes > left) {
		want->item_bytes = 0;
		t->refused_bytes = 0;
	}
}

/* Get a larger grant. Returns false if the root has no space, or if that
 * failed. */
static bool grant_extend(struct tier *t, struct grant_want *want)
{
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	CLEANUP_FD int lock = grants_lock(t->root_fd);
	struct grant *one;

	if (!g || lock < 0 || grants_read(t->root_fd, g) < 0 ||
		grants_find_lost(t->root_fd, g, name_in_root(t)) < 0)
		return false;
	one = grants_find(g, name_in_root(t));
	if (!one)
		return false;
	grant_note_left(t, g, want);
	if (!want->step && want->item_bytes == 0)
		return true;
	if (!grant_grow(g, one, want->item_bytes) ||
		grants_write(t->root_fd, g) < 0)
		return false;
	grant_take(t, g, one);
	return true;
}

/* Write the grant of the tier again, with the root locked. */
static int grant_restore(struct tier *t, struct grants *g)
{
	struct grant *one = grants_add(g, name_in_root(t));

	if (!one)
		return -ENOSPC;
	if (g->bytes == 0) {
		g->bytes = t->root_bytes;
		g->inodes = t->root_inodes;
	}
	LOCK_SCOPE(&t->lock);
	one->bytes = t->capacity_bytes;
	one->inodes = t->capacity_entries == UINT64_MAX
		? 0
		: t->capacity_entries + TIER_INODES;
	return 0;
}

/* Does the file of the grants still have that of this tier? Somebody may have
 * deleted it, and the next mount must not get what this tier uses. */
static void grant_look(struct tier *t)
{
	CLEANUP_FREE struct grants *g = NULL;
	CLEANUP_FD int lock = -1;
	uint64_t file = grants_file(t->root_fd);

	if (file && file == t->grants_seen)
		return;
	g = malloc(sizeof(*g));
	lock = g ? grants_lock(t->root_fd) : -1;
	if (lock < 0 || grants_read(t->root_fd, g) < 0)
		return;
	if (!grants_find(g, name_in_root(t)) &&
		(grant_restore(t, g) < 0 || grants_write(t->root_fd, g) < 0))
		return;
	t->grants_seen = grants_file(t->root_fd);
}

void tier_watch(struct tier *t)
{
	uint64_t now_ns = clock_now_ns();
	struct grant_want want;
	bool got;

	watch_space(t);
	if (t->root_fd < 0)
		return;
	if (now_ns > t->touch_ns) {
		t->touch_ns = now_ns + TOUCH_NS;
		/* a failure makes the tier look unused, but it is locked */
		(void)futimens(t->lock_fd, NULL);
	}
	if (now_ns > t->look_ns) {
		t->look_ns = now_ns + LOOK_NS;
		grant_look(t);
	}
	if (now_ns < t->grant_ns || !grant_wanted(t, &want))
		return;
	got = grant_extend(t, &want);
	t->grant_ns = got ? 0 : now_ns + GRANT_AGAIN_NS;
	LOCK_SCOPE(&t->lock);
	t->grant_last = !got;
}

void tier_root_undo(struct tier *t)
{
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	CLEANUP_FD int lock = -1;
	struct grant *one;

	if (t->root_fd < 0 || !t->made_grant)
		return;
	lock = g ? grants_lock(t->root_fd) : -1;
	if (lock < 0 || grants_read(t->root_fd, g) < 0)
		return;
	one = grants_find(g, name_in_root(t));
	if (one) {
		grants_remove(g, one);
		(void)grants_write(t->root_fd, g); /* the grant stays */
	}
}

/* Has the directory nothing but what makes it a tier? */
static bool tier_is_bare(const struct tier *t)
{
	CLEANUP_DIR DIR *dir = tier_open_subdir(t->fd, ".");
	const struct dirent *e;

	while (dir && (errno = 0, e = readdir(dir)))
		if (!name_is_dots(e->d_name) && strlen(e->d_name) != 2 &&
			strcmp(e->d_name, TMP_DIR_NAME) != 0 &&
			strcmp(e->d_name, IDENTITY_NAME) != 0 &&
			strcmp(e->d_name, LOCK_FILE_NAME) != 0)
			return false;
	return dir && errno == 0;
}

/* Delete a tier that this mount has made and that has nothing, as after a mount
 * that has failed: its directories would keep inodes. Returns false if it
 * stays; what was deleted of it is then made again by the next mount. */
static bool tier_remove_bare(struct tier *t)
{
	char name[] = "00";

	if (!t->made_dir || t->entries > 0 || !tier_is_bare(t))
		return false;
	for (unsigned i = 0; i < TIER_SUBDIRS; i++) {
		(void)snprintf(name, sizeof(name), "%02x", i & 0xff);
		if (unlinkat(t->fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return false;
	}
	if (unlinkat(t->fd, TMP_DIR_NAME, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return false;
	return unlinkat(t->fd, IDENTITY_NAME, 0) == 0 &&
		unlinkat(t->fd, LOCK_FILE_NAME, 0) == 0 &&
		unlinkat(t->root_fd, name_in_root(t), AT_REMOVEDIR) == 0;
}

void tier_root_end(struct tier *t, bool complete)
{
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	CLEANUP_FD int lock = -1;
	struct grant *one;

	if (t->root_fd < 0)
		return;
	(void)futimens(t->lock_fd, NULL); /* as in tier_watch() */
	grant_look(t);
	lock = complete && g ? grants_lock(t->root_fd) : -1;
	if (lock < 0 || grants_read(t->root_fd, g) < 0)
		return;
	one = grants_find(g, name_in_root(t));
	if (one && tier_remove_bare(t)) {
		grants_remove(g, one);
		(void)grants_write(t->root_fd, g); /* the grant stays */
		return;
	}
	/* All entries were counted, so space that they do not use is returned.
	 */
	if (one && t->charged_bytes <= one->bytes &&
		(g->inodes == 0 || t->entries + TIER_INODES <= one->inodes)) {
		one->bytes = t->charged_bytes;
		one->inodes = t->entries + TIER_INODES;
		(void)grants_write(t->root_fd, g); /* the grant stays larger */
	}
}

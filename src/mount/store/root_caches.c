/* SPDX-License-Identifier: MIT */
/*
 * The caches of a cache root. A cache is dropped in two steps: with the root
 * and the tier locked, its directory and its grant get another name, so that a
 * mount begins a new one; then it is deleted without the root's lock, which
 * may take long, and the grant goes last.
 */
#include "mount/store/root_caches.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "mount/store/grants.h"
#include "mount/store/store.h"
#include "mount/store/tier_identity_impl.h"

static int caches_open(const char *root, struct grants *g, struct error *err)
{
	CLEANUP_FD int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : grants_read(fd, g);

	if (rc < 0)
		return error_set(
			err, rc, "cannot read cache root '%s': %m", root);
	if (g->bytes == 0)
		return error_set(err, -EINVAL,
			"'%s' is not a cache root; name the directory that "
			"mounts have as --cache-root",
			root);
	return steal_fd(&fd);
}

/* Fill in the facts that the directory of a cache shows. `dataset` is memory
 * for one of them. Returns 0, even if there is no directory, or -errno if the
 * directory cannot be read. */
static int cache_look(int root_fd, struct root_cache *c, char **dataset)
{
	CLEANUP_FD int dir = openat(root_fd, c->dir,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct error ignored;
	struct stat st;

	c->dataset = "";
	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	if (identity_read(dir, c->dir, dataset, &ignored) == 0)
		c->dataset = *dataset;
	if (fstatat(dir, LOCK_FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
		c->used = st.st_mtime;
	if (flock(dir, LOCK_SH | LOCK_NB) < 0)
		c->in_use = errno == EWOULDBLOCK;
	return 0;
}

/* Does the root belong to this user? Files that root would create in another
 * user's directory would be refused by that user's mounts. */
static bool root_is_own(int root_fd)
{
	struct stat st;

	return fstat(root_fd, &st) == 0 && st.st_uid == geteuid();
}

int root_caches_list(const char *root, root_cache_fn *fn, void *arg,
	struct root_size *size, struct error *err)
{
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	CLEANUP_FD int fd = -1;
	CLEANUP_FD int lock = -1;

	if (!g)
		return error_set(err, -ENOMEM, "%m");
	fd = caches_open(root, g, err);
	if (fd < 0)
		return fd;
	/* While the root is locked, no mount begins. Without that lock, which
	 * another user cannot get, the cache of a mount that begins now may be
	 * reported as in use. */
	lock = root_is_own(fd) ? grants_lock(fd) : -1;
	*size = (struct root_size){g->bytes, g->bytes - grants_left_bytes(g)};
	for (unsigned i = 0; i < g->n; i++) {
		CLEANUP_FREE char *dataset = NULL;
		struct root_cache c = {.dir = g->grant[i].name,
			.granted_bytes = g->grant[i].bytes,
			.granted_inodes = g->grant[i].inodes};

		/* a cache that cannot be looked at is listed, too */
		(void)cache_look(fd, &c, &dataset);
		fn(arg, &c);
	}
	return 0;
}

/* Give the cache another name. The root is locked, and the grants are written.
 */
static int cache_set_aside(
	int root_fd, struct grants *g, struct grant *one, struct error *err)
{
	char name[GRANT_NAME_MAX];
	CLEANUP_FD int dir = openat(root_fd, one->name,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int rc;

	if (dir < 0 && errno != ENOENT)
		return error_set(
			err, -errno, "cannot open '%s': %m", one->name);
	if (grant_is_dropping(one->name))
		return 0;
	/* A mount that uses the cache holds this lock. */
	if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) < 0)
		return -EBUSY;
	if ((size_t)snprintf(name, sizeof(name), GRANT_DROP_PREFIX "%s",
		    one->name) >= sizeof(name) ||
		grants_find(g, name))
		return -EBUSY;
	if (dir >= 0 && renameat(root_fd, one->name, root_fd, name) < 0)
		return error_set(
			err, -errno, "cannot rename '%s': %m", one->name);
	(void)snprintf(one->name, sizeof(one->name), "%s", name);
	rc = grants_write(root_fd, g);
	return rc < 0 ? error_set(err, rc, "cannot write the grants: %m") : 0;
}

/* Delete a cache that was set aside. */
static int cache_delete(
	const char *root, int root_fd, const char *name, struct error *err)
{
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	CLEANUP_FD int lock = -1;
	char path[PATH_MAX];
	uint64_t removed;
	struct grant *one;
	struct stat st;
	int rc = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	if (fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		rc = store_clear_dir(path, &removed, err);
	else if (errno != ENOENT)
		rc = error_set(err, -errno, "cannot look at '%s': %m", path);
	/* the directory is empty: an earlier call was killed after the last
	 * file */
	if (rc == -EINVAL)
		rc = 0;
	if (rc < 0)
		return rc;
	if (unlinkat(root_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return error_set(err, -errno,
			"cannot remove '%s': %m; delete what is not the "
			"cache's in it, and try again",
			path);
	lock = grants_lock(root_fd);
	rc = !g ? -ENOMEM : lock < 0 ? lock : grants_read(root_fd, g);
	one = rc < 0 ? NULL : grants_find(g, name);
	if (one) {
		grants_remove(g, one);
		rc = grants_write(root_fd, g);
	}
	return rc < 0 ? error_set(err, rc, "cannot write the grants: %m") : 0;
}

/* Drop one cache if that is allowed. Returns 1 if the cache was dropped, or
 * would be. */
static int cache_drop(const char *root, int root_fd, const char *name,
	time_t before, bool dry_run, struct root_cache *c, char **dataset,
	struct error *err)
{
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	int lock = grants_lock(root_fd);
	int rc = !g ? -ENOMEM : lock < 0 ? lock : grants_read(root_fd, g);
	struct grant *one = rc < 0 ? NULL : grants_find(g, name);
	char aside[GRANT_NAME_MAX] = "";

	if (rc < 0)
		(void)error_set(err, rc, "cannot lock the grants: %m");
	if (one) {
		*c = (struct root_cache){.dir = name,
			.granted_bytes = one->bytes,
			.granted_inodes = one->inodes};
		rc = cache_look(root_fd, c, dataset);
		if (rc < 0)
			(void)error_set(err, rc,
				"cannot open cache '%s/%s': %m; it stays", root,
				name);
		else if (!c->in_use &&
			(c->used < before || grant_is_dropping(name))) {
			rc = dry_run ? 0
				     : cache_set_aside(root_fd, g, one, err);
			(void)snprintf(aside, sizeof(aside), "%s", one->name);
		}
	}
	if (lock >= 0)
		(void)close(lock); /* this unlocks the root */
	if (rc == -EBUSY)
		return 0;
	if (rc < 0 || !*aside)
		return rc;
	rc = dry_run ? 0 : cache_delete(root, root_fd, aside, err);
	return rc < 0 ? rc : 1;
}

int root_caches_drop(const char *root, time_t before, bool dry_run,
	root_cache_fn *fn, void *arg, struct error *err)
{
	CLEANUP_FREE struct grants *g = malloc(sizeof(*g));
	CLEANUP_FD int fd = -1;
	int failed = 0;

	if (!g)
		return error_set(err, -ENOMEM, "%m");
	fd = caches_open(root, g, err);
	if (fd < 0)
		return fd;
	if (!root_is_own(fd))
		return error_set(err, -EPERM,
			"cache root '%s' belongs to another user; run this "
			"command as that user",
			root);
	for (unsigned i = 0; i < g->n; i++) {
		CLEANUP_FREE char *dataset = NULL;
		struct root_cache c;
		struct error why;
		int rc = cache_drop(root, fd, g->grant[i].name, before, dry_run,
			&c, &dataset, &why);

		if (rc == 1)
			fn(arg, &c);
		if (rc < 0 && failed == 0)
			failed = error_set(err, rc, "%s", why.msg);
	}
	return failed;
}

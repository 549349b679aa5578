/* SPDX-License-Identifier: MIT */
/*
 * Resolves the paths of the command line: the source, the mountpoint and what
 * is mounted there, and the directories of the tiers. Runs once, before other
 * threads exist.
 */
#include "mount/daemon/mount_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/path.h"
#include "common/base/unmount.h"
#include "mount/store/grants.h"

/* Does the last tier have a saved manifest? If so, the mount can start without
 * the source. */
static bool has_manifest(const struct mount *m)
{
	size_t n = m->options.ntiers;
	char path[PATH_MAX];

	return n > 0 &&
		(size_t)snprintf(path, sizeof(path), "%s/%s",
			m->options.tiers[n - 1].dir,
			MANIFEST_FILE) < sizeof(path) &&
		access(path, F_OK) == 0;
}

/* -- The mountpoint ------------------------------------------------------ */

static int probe_mountpoint(const char *path, struct error *err)
{
	int rc = fs_probe(path);
	struct error why;

	if (rc == -ENOTCONN) {
		/* Remove a mount that a dead daemon has left behind. */
		rc = unmount(path, true, &why);
		if (rc < 0)
			return error_set(err, rc,
				"cannot detach the dead mount on '%s': %m; "
				"try 'umount -l %s'",
				path, path);
		return 0;
	}
	if (rc == 1)
		return error_set(err, -EBUSY,
			"'%s' is already a refrain mount; unmount it with "
			"'refrain umount %s'",
			path, path);
	if (rc == -EBUSY)
		return error_set(err, -EBUSY,
			"another file system is mounted on '%s'; choose "
			"another directory",
			path);
	return 0;
}

static int check_empty(const char *path, struct error *err)
{
	CLEANUP_DIR DIR *dir = opendir(path);
	const struct dirent *e;

	if (!dir && errno == ENOTDIR)
		return error_set(err, -ENOTDIR,
			"cannot use mountpoint '%s': %m; name an empty "
			"directory",
			path);
	if (!dir)
		return error_set(err, -errno,
			"cannot use mountpoint '%s': %m; make it with "
			"'mkdir -p %s', or choose a directory of your own",
			path, path);
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return error_set(err, -ENOTEMPTY,
				"mountpoint '%s' is not empty; choose an empty "
				"directory",
				path);
	return 0;
}

/* Find the mountpoint of a mount that was passed on, without a system call for
 * its path: no daemon serves the mount now, so the call would hang. The mount
 * may even have been detached from its path, if files were open. */
static int find_held(struct mount *m, struct error *err)
{
	const char *typed = m->options.mountpoint;

	m->mountpoint = path_of_mountpoint(typed);
	return m->mountpoint ? 0
			     : error_set(err, -errno,
				       "cannot use mountpoint '%s': %m", typed);
}

static int check_mountpoint(struct mount *m, struct error *err)
{
	const char *typed = m->options.mountpoint;
	char *real;
	int rc;

	m->mountpoint = path_of_mountpoint(typed);
	if (!m->mountpoint)
		return error_set(err, -errno,
			"cannot use mountpoint '%s': %m; make it with "
			"'mkdir -p %s'",
			typed, typed);
	rc = probe_mountpoint(m->mountpoint, err);
	if (rc < 0)
		return rc;
	real = realpath(m->mountpoint, NULL);
	if (real) {
		free(m->mountpoint);
		m->mountpoint = real;
		rc = probe_mountpoint(m->mountpoint, err);
		if (rc < 0)
			return rc;
	}
	/* A mount inside its source would list itself without end. */
	if (stack_contains(m->stack, m->mountpoint))
		return error_set(err, -EINVAL,
			"mountpoint '%s' is inside the source; choose another "
			"directory",
			typed);
	return check_empty(m->mountpoint, err);
}

/* -- Tiers --------------------------------------------------------------- */

static void note_new_tier(struct mount *m, size_t i)
{
	CLEANUP_FD int dir =
		open(m->tier_dir[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

	m->tier_dir_new[i] = dir < 0 && errno == ENOENT;
	m->tier_new[i] =
		m->tier_dir_new[i] || (dir >= 0 && !store_is_tier(dir));
}

/* Check that no tier's directory is inside another one. The store refuses equal
 * directories. */
static int check_nested(const struct mount *m, size_t i, struct error *err)
{
	for (size_t k = 0; k < i; k++) {
		const char *a = m->tier_dir[i], *b = m->tier_dir[k];
		bool a_inside = path_is_inside(a, b);

		if (a_inside != path_is_inside(b, a))
			return error_set(err, -EINVAL,
				"cache directory '%s' is inside cache "
				"directory '%s'; choose another place",
				a_inside ? a : b, a_inside ? b : a);
	}
	return 0;
}

/* Resolve the directory of a tier. The path must be absolute, because the
 * daemon leaves the working directory. */
static int resolve_tier(struct mount *m, size_t i, struct error *err)
{
	const char *typed = m->typed[i] = m->options.tiers[i].dir;
	CLEANUP_FREE char *path = path_of_mountpoint(typed);
	CLEANUP_FREE char *real = NULL;
	int rc;

	if (!path)
		return error_set(err, -errno,
			"cannot use cache directory '%s': %m; create its "
			"parent directory",
			typed);
	real = realpath(path, NULL);
	m->tier_dir[i] = real ? steal_ptr(&real) : steal_ptr(&path);
	if (stack_contains(m->stack, m->tier_dir[i]))
		return error_set(err, -EINVAL,
			"cache directory '%s' is inside the source, which is "
			"never written to; choose another place",
			typed);
	if (stack_is_inside(m->stack, m->tier_dir[i]))
		return error_set(err, -EINVAL,
			"the source is inside cache directory '%s'; choose "
			"another place",
			typed);
	if (path_is_inside(m->tier_dir[i], m->mountpoint))
		return error_set(err, -EINVAL,
			"cache directory '%s' is inside the mountpoint; choose "
			"another place",
			typed);
	rc = check_nested(m, i, err);
	if (rc < 0)
		return rc;
	m->options.tiers[i].dir = m->tier_dir[i];
	note_new_tier(m, i);
	return 0;
}

/* -- A connection that another program has opened ------------------------- */

static bool has_contexts(const struct fs_contexts *c)
{
	return c->context || c->fscontext || c->defcontext || c->rootcontext;
}

/* Refuse options that only the program that has opened the connection can set.
 */
static int check_given_options(const struct mount_options *o, struct error *err)
{
	const char *what = NULL;

	if (o->allow_other)
		what = "--allow-other is for the program that mounts";
	else if (has_contexts(&o->contexts))
		what = "contexts of SELinux are for the program that mounts";
	else if (o->pages_bytes > 0)
		what = "--pages needs the directory of the mount";
	else if (o->hooks)
		what = "an analysis needs the directory of the mount";
	return what ? error_set(err, -EINVAL, "cannot serve '%s': %s",
			      o->mountpoint, what)
		    : 0;
}

static int find_given(struct mount *m, int fd, bool held, struct error *err)
{
	int rc = check_given_options(&m->options, err);

	if (rc == 0 && !held)
		rc = fs_check_connection(fd, err);
	if (rc < 0)
		return rc;
	/* cannot fail: the descriptor is open */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	m->mountpoint = strdup(m->options.mountpoint);
	return m->mountpoint ? 0 : error_set(err, -ENOMEM, "cannot mount: %m");
}

/* Add the tier in the cache root. The name of its directory depends on the
 * source, so the source must be known. */
static int add_root_tier(struct mount *m, struct error *err)
{
	struct mount_options *o = &m->options;
	char name[GRANT_NAME_MAX];
	CLEANUP_FREE char *root = NULL;
	struct stat st;

	if (o->ntiers == STORE_TIERS_MAX)
		return error_set(err, -EINVAL,
			"at most %d caches are supported", STORE_TIERS_MAX);
	root = path_of_mountpoint(o->root.root);
	if (!root)
		return error_set(err, -errno,
			"cannot use cache root '%s': %m; create its parent "
			"directory",
			o->root.root);
	/* This must be checked before anything is created in the root. */
	if (stack_contains(m->stack, root))
		return error_set(err, -EINVAL,
			"cache root '%s' is inside the source, which is never "
			"written to; choose another place",
			o->root.root);
	/* resolve_tier() will resolve the path of the tier below the root. */
	if (mkdir(root, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno,
			"cannot create cache root '%s': %m; choose a directory "
			"of your own",
			o->root.root);
	grant_name(stack_dataset(m->stack), name);
	if (asprintf(&m->root_dir, "%s/%s", root, name) < 0) {
		m->root_dir = NULL;
		return error_set(err, -ENOMEM, "cannot mount: %m");
	}
	if (lstat(m->root_dir, &st) == 0 && S_ISLNK(st.st_mode))
		return error_set(err, -ENOTDIR,
			"'%s' in the cache root is a symbolic link; delete it, "
			"and put a link in place of the whole root instead",
			m->root_dir);
	m->root = steal_ptr(&root);
	o->tiers[o->ntiers++] = (struct tier_config){
		.dir = m->root_dir, .size = o->root.size, .root = m->root};
	return 0;
}

/* Open the source. If the source cannot be reached, a saved manifest is enough.
 * But with a cache root, the directory of the manifest is known only when the
 * source is open. */
static int open_source(struct mount *m, bool held, struct error *err)
{
	struct error why;
	int rc = stack_new(
		&m->stack, &m->options.source, held || has_manifest(m), err);

	if (rc == 0 && m->options.root.root)
		return add_root_tier(m, err);
	if (rc == 0 || !m->options.root.root ||
		stack_new(&m->stack, &m->options.source, true, &why) < 0)
		return rc;
	if (add_root_tier(m, &why) == 0 && has_manifest(m))
		return 0;
	return rc;
}

int mount_resolve(struct mount *m, struct error *err)
{
	int given = fs_given_connection(m->options.mountpoint);
	bool held = m->given.fuse >= 0 || m->options.check;
	int rc = open_source(m, held, err);

	if (rc == 0 && given >= 0)
		rc = find_given(m, given, held, err);
	else if (rc == 0)
		rc = held ? find_held(m, err) : check_mountpoint(m, err);
	for (size_t i = 0; rc == 0 && i < m->options.ntiers; i++)
		rc = resolve_tier(m, i, err);
	return rc;
}

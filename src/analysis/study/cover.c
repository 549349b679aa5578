/* SPDX-License-Identifier: MIT */
/* Gives the command a mount namespace; see cover_impl.h. Runs in the command's
 * process before it executes the command. */
#include "analysis/study/cover_impl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"

/* -- The namespace --------------------------------------------------------- */

static int write_proc(const char *path, const char *text)
{
	CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : -errno;
}

/* Enter a user namespace that maps this user and group to themselves. */
static int own_users(uid_t uid, gid_t gid)
{
	char map[64];

	/* If this fails, the kernel is old: it has no such file, and does not
	 * require it. */
	(void)write_proc("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (write_proc("/proc/self/uid_map", map) < 0)
		return -errno;
	(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return write_proc("/proc/self/gid_map", map);
}

static int own_mounts(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWNS) == 0)
		return 0;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ? -errno
							: own_users(uid, gid);
}

/* -- Other refrain mounts -------------------------------------------------- */

struct other_mount {
	unsigned id, parent;
	bool follows, refrain;
	char *path;
};

struct other_mounts {
	struct other_mount *mount;
	size_t n, room;
};

static void list_mounts(struct other_mounts *all, const struct stat *own)
{
	struct mountinfo_entry e;
	struct mountinfo m;

	if (mountinfo_open(&m, 0) < 0)
		return;
	while (mountinfo_next(&m, &e)) {
		bool refrain = strcmp(e.type, MOUNTINFO_REFRAIN) == 0 &&
			(e.major != major(own->st_dev) ||
				e.minor != minor(own->st_dev));
		struct other_mount o = {e.id, e.parent, e.follows, refrain,
			refrain ? strdup(e.path) : NULL};

		if (ARRAY_ROOM(all->mount, all->n, &all->room) == 0)
			all->mount[all->n++] = o;
		else
			free(o.path);
	}
	mountinfo_close(&m);
}

static void free_mounts(struct other_mounts *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->mount[i].path);
	free(all->mount);
}

/* Does an unmount outside the namespace also unmount this mount in the
 * namespace? */
static bool is_kept_in_step(
	const struct other_mounts *all, const struct other_mount *o)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->mount[i].id == o->parent)
			return all->mount[i].follows;
	return false;
}

static bool is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 &&
		(path[n] == '/' || path[n] == '\0');
}

/* Does a word of the command contain the path? */
static bool names_mount(char *const *command, const char *path)
{
	for (; *command; command++)
		for (const char *at = *command; (at = strstr(at, path)); at++) {
			unsigned char next = (unsigned char)at[strlen(path)];

			if (!isalnum(next) && !strchr("._-", next ? next : '/'))
				return true;
		}
	return false;
}

/* Detach other refrain mounts, as far as this is allowed: an unprivileged
 * namespace may not detach the mounts that it had at its creation. */
static void detach_others(const struct analyze_config *c, const char *cwd)
{
	struct other_mounts all = {NULL};
	struct stat own;

	if (stat(c->mountpoint, &own) < 0)
		return;
	list_mounts(&all, &own);
	/* Go backwards, because later mounts are above earlier ones. */
	for (size_t i = all.n; i-- > 0;) {
		const struct other_mount *o = &all.mount[i];

		if (o->path && !is_kept_in_step(&all, o) &&
			!is_below(cwd, o->path) &&
			!is_below(c->source, o->path) &&
			!names_mount(c->command, o->path))
			(void)umount2(o->path, MNT_DETACH);
	}
	free_mounts(&all);
}

int cover_source(const struct analyze_config *c)
{
	char cwd[PATH_MAX];
	int rc;

	if (!getcwd(cwd, sizeof(cwd)))
		cwd[0] = '\0';
	rc = own_mounts();
	if (rc < 0)
		return rc;
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
		mount(c->mountpoint, c->source, NULL, MS_BIND, NULL) < 0)
		return -errno;
	detach_others(c, cwd);
	/* Enter the working directory again, because it may be in the source,
	 * which is covered now. */
	return cwd[0] && chdir(cwd) < 0 ? -errno : 0;
}

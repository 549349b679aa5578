/* SPDX-License-Identifier: MIT */
/* The directories and the mount of an analysis; see analyze_place.h. One
 * thread. */
#include "analyze_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"
#include "command.h"
#include "analysis/fleet/client.h"
#include "mounts.h"
#include "mount/store/store.h"

/* The names of the directories are this prefix and the process number. */
#define PLACE_NAME "refrain-analyze."

/* The time limit for the end of the daemon, which needs some seconds. */
#define DAEMON_ENDS_MS 30000

/* -- Of this analysis ------------------------------------------------------ */

static int make_own_dir(char path[PATH_MAX], const char *top, struct error *err)
{
	(void)snprintf(path, PATH_MAX, "%s/" PLACE_NAME "%d.XXXXXX", top,
		(int)getpid());
	if (mkdtemp(path))
		return 0;
	path[0] = '\0';
	return error_set(
		err, -errno, "cannot make a directory in '%s': %m", top);
}

int place_make(struct analyze_place *at, const char *tmp, const char *top,
	struct error *err)
{
	int rc = make_own_dir(at->mountpoint, tmp, err);

	if (rc == 0)
		rc = make_own_dir(at->cache, top, err);
	if (rc == 0)
		(void)snprintf(
			at->tier, sizeof(at->tier), "%s/tier", at->cache);
	return rc;
}

/* Ask the daemon to end; it unmounts then. To unmount is not enough: a mount
 * namespace that was made during the analysis may have a copy of the mount, and
 * the daemon would serve that copy without end. umount reports errors. */
static void end_daemon(const char *mountpoint)
{
	struct ctl_client *client = NULL;
	struct error err;
	pid_t pid;

	if (ctl_connect(&client, mountpoint, &err) < 0)
		return;
	pid = ctl_client_pid(client);
	if (pid > 0 && kill(pid, SIGTERM) == 0)
		(void)ctl_wait_gone(client, DAEMON_ENDS_MS);
	ctl_disconnect(client);
}

/* Returns true if nothing is mounted there any more. Otherwise umount has
 * reported why. */
static bool end_mount(char *mountpoint)
{
	char *umount[] = {(char[]){"umount"}, mountpoint, NULL};
	CLEANUP_FREE char *path = NULL;
	struct error err;

	end_daemon(mountpoint);
	return mounts_find(mountpoint, &path, &err) == -EINVAL ||
		cmd_umount(2, umount) == EXIT_OK;
}

int place_remove(struct analyze_place *at, struct error *err)
{
	bool ended = !at->mounted || end_mount(at->mountpoint);
	uint64_t removed;
	int rc = 0;

	if (!ended)
		rc = error_set(err, -EBUSY,
			"'%s' and '%s' could not be removed", at->mountpoint,
			at->cache);
	else if (at->mounted)
		rc = store_clear_dir(at->tier, &removed, err);
	/* rmdir() fails if the analysis left files behind; that failure was
	 * reported already. */
	if (at->tier[0])
		(void)rmdir(at->tier);
	if (at->cache[0])
		(void)rmdir(at->cache);
	if (at->mountpoint[0])
		(void)rmdir(at->mountpoint);
	return rc;
}

/* -- Analyses that were killed --------------------------------------------- */

/* Is a refrain mount at the path? This does not access the mounted file system,
 * because the daemon of another user may not answer, and may name any socket as
 * its own. */
static bool is_refrain_mount(const char *path, uid_t *owner)
{
	CLEANUP_FD int fd =
		open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && mountinfo_refrain_root(fd, owner, NULL, 0) == 0;
}

/* Call fn for each directory and each mount in `top` that a killed analysis of
 * this user has left. */
static void each_left(
	const char *top, void (*fn)(const char *path, bool mounted))
{
	CLEANUP_DIR DIR *dir = opendir(top);
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[PATH_MAX];
		struct stat st, above;
		bool mounted;
		uid_t owner;
		long pid;

		if (strncmp(d->d_name, PLACE_NAME, strlen(PLACE_NAME)) != 0)
			continue;
		pid = strtol(d->d_name + strlen(PLACE_NAME), NULL, 10);
		if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH ||
			snprintf(path, sizeof(path), "%s/%s", top, d->d_name) >=
				(int)sizeof(path))
			continue;
		mounted = is_refrain_mount(path, &owner);
		if (mounted) {
			if (owner == geteuid())
				fn(path, true);
		} else if (lstat(path, &st) == 0 && stat(top, &above) == 0 &&
			st.st_uid == geteuid() && st.st_dev == above.st_dev) {
			fn(path, false);
		}
	}
}

static void remove_left_mount(const char *path, bool mounted)
{
	char text[PATH_MAX];

	(void)snprintf(text, sizeof(text), "%s", path);
	if (mounted)
		(void)end_mount(text); /* end_mount() reports why it failed */
	(void)rmdir(path);
}

static void remove_left_cache(const char *path, bool mounted)
{
	char tier[PATH_MAX + 8];
	uint64_t removed;
	struct error err;

	(void)mounted;
	(void)snprintf(tier, sizeof(tier), "%s/tier", path);
	/* store_clear_dir() removes neither a tier that another mount uses nor
	 * files of other programs. */
	(void)store_clear_dir(tier, &removed, &err);
	(void)rmdir(tier);
	(void)rmdir(path);
}

void place_remove_left(const char *tmp, const char *top)
{
	each_left(tmp, remove_left_mount);
	each_left(top, remove_left_cache);
}

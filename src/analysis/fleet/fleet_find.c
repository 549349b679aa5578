/* SPDX-License-Identifier: MIT */
/* Finds the control socket of a mount; see fleet_find_impl.h. No state. */
#include "analysis/fleet/fleet_find_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/mountinfo.h"
#include "common/control/talk.h"

/* The message that the child sends. */
struct fleet_found {
	int32_t rc; /* length of the path, or -errno */
	char path[PATH_MAX];
};

/* Close all descriptors but `to`. If the child hangs, it may outlive this
 * process, and other programs may wait for the closing of a descriptor: of a
 * pipe of the shell, or of the port of the exporter. */
static int keep_only(int to)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (dup2(to, fd) < 0)
			return -errno;
#ifdef SYS_close_range
	(void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
#endif
	return 0;
}

/* Take the identity of the owner. Without --allow-other, nobody else can access
 * the mount, not even root. The owner may be root. */
static int become_owner(uid_t uid, gid_t gid)
{
	if (geteuid() != 0 || uid == 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
		setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

static int read_path(const char *mountpoint, char *path, size_t size)
{
	CLEANUP_FD int fd = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;
	char link[64];
	ssize_t n;
	uid_t uid;

	if (rc == 0)
		rc = mountinfo_refrain_root(fd, &uid, NULL, 0);
	if (rc < 0)
		return rc;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = getxattr(link, TALK_XATTR, path, size - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return (int)n;
}

static void find_in_child(void *arg, int to)
{
	const struct fleet_find *find = arg;
	struct fleet_found found = {.rc = keep_only(to)};

	if (found.rc == 0)
		found.rc = become_owner(find->uid, find->gid);
	if (found.rc == 0)
		found.rc = read_path(
			find->mountpoint, found.path, sizeof(found.path));
	/* The message is short enough for a pipe to take it at once. */
	(void)!write(STDOUT_FILENO, &found,
		offsetof(struct fleet_found, path) + strlen(found.path) + 1);
}

int fleet_find_start(struct fleet_find *find)
{
	return probe_start(&find->probe, find_in_child, find);
}

int fleet_find_end(struct fleet_find *find, char path[PATH_MAX])
{
	struct fleet_found found = {.rc = -EIO};
	ssize_t n = read(find->probe.fd, &found, sizeof(found));

	/* The child has written its message, so it ends at once. */
	(void)probe_wait(&find->probe, -1);
	probe_end(&find->probe);
	if (n <= (ssize_t)offsetof(struct fleet_found, path))
		return -EIO;
	memcpy(path, found.path, sizeof(found.path));
	path[PATH_MAX - 1] = '\0';
	return found.rc;
}

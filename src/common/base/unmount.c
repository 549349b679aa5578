/* SPDX-License-Identifier: MIT */
/* Unmounts a file system; see unmount.h. */
#include "common/base/unmount.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"

extern char **environ;

/* Run fusermount3 with its messages sent to `fd`. *status gets its wait status.
 */
static int spawn_fusermount(char *path, bool lazy, int fd, int *status)
{
	char program[] = "fusermount3", option_u[] = "-u", option_z[] = "-uz",
	     end[] = "--";
	char *argv[] = {program, lazy ? option_z : option_u, end, path, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int rc;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	rc = -posix_spawn_file_actions_adddup2(&actions, fd, STDERR_FILENO);
	if (rc == 0)
		rc = -posix_spawnp(
			&pid, program, &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	while (rc == 0 && waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			rc = -errno;
	return rc;
}

static int fusermount(const char *path, bool lazy, struct error *err)
{
	CLEANUP_FREE char *copy = strdup(path);
	int pipe_fds[2], status = 0, rc;
	char said[512] = "";
	ssize_t n;

	/* fusermount3 prints few lines, which fit into the pipe, so it never
	 * waits for a reader. */
	if (!copy || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot make a pipe: %m");
	rc = spawn_fusermount(copy, lazy, pipe_fds[1], &status);
	(void)close(pipe_fds[1]);
	n = read(pipe_fds[0], said, sizeof(said) - 1);
	(void)close(pipe_fds[0]);
	if (rc < 0) {
		(void)error_set(
			err, rc, "cannot run fusermount3: %m; install fuse3");
		return -EPERM;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	said[n > 0 ? n : 0] = '\0';
	said[strcspn(said, "\n")] = '\0';
	return error_set(err, strstr(said, "busy") ? -EBUSY : -EPERM,
		"cannot unmount '%s': %s", path,
		*said ? said : "fusermount3 failed");
}

int unmount(const char *path, bool lazy, struct error *err)
{
	if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	/* A user other than root needs the setuid helper. */
	if (errno == EPERM)
		return fusermount(path, lazy, err);
	return error_set(err, -errno, "cannot unmount '%s': %m", path);
}

/* Abort the connection through the kernel's control file system, if that is
 * mounted. The user who has mounted may write the file. */
static void abort_connection(unsigned device)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort",
		device);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		/* without the file system, the connection ends when its last
		 * descriptor is closed */
		return;
	(void)!write(fd, "1", 1);
	(void)close(fd);
}

int unmount_by_force(const char *path, unsigned device, struct error *err)
{
	/* MNT_FORCE works only for root. */
	if (umount2(path, UMOUNT_NOFOLLOW | MNT_FORCE | MNT_DETACH) == 0)
		return 0;
	abort_connection(device);
	return unmount(path, true, err);
}

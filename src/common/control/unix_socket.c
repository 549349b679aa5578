/* SPDX-License-Identifier: MIT */
/* Functions for Unix sockets that have a path; see unix_socket.h. */
#include "common/control/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

#define BACKLOG 64

const char *socket_runtime_dir(struct stat *st)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	return dir && dir[0] == '/' && stat(dir, st) == 0 &&
			S_ISDIR(st->st_mode) && st->st_uid == geteuid()
		? dir
		: NULL;
}

int socket_open_dir(const char *dir, mode_t forbidden)
{
	CLEANUP_FD int fd = -1;
	struct stat st;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & forbidden))
		return -EPERM;
	return steal_fd(&fd);
}

static int open_socket(const char *path, int type, struct sockaddr_un *at)
{
	int fd;

	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(at->sun_path))
		return -ENAMETOOLONG;
	strcpy(at->sun_path, path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

int socket_connect(const char *path, int type)
{
	struct sockaddr_un at;
	CLEANUP_FD int fd = open_socket(path, type, &at);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	return steal_fd(&fd);
}

int socket_listen(const char *path, int type, mode_t mode, gid_t group)
{
	struct sockaddr_un at;
	CLEANUP_FD int fd = open_socket(path, type, &at);

	if (fd >= 0 &&
		(bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
			chmod(path, mode) < 0 ||
			(group != (gid_t)-1 &&
				chown(path, (uid_t)-1, group) < 0) ||
			listen(fd, BACKLOG) < 0))
		return -errno;
	return steal_fd(&fd);
}

bool socket_peer(int fd, struct ucred *peer)
{
	socklen_t len = sizeof(*peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) == 0;
}

int socket_check_peer(int fd, uid_t owner)
{
	struct ucred peer;

	if (!socket_peer(fd, &peer))
		return -errno;
	return peer.uid == owner || peer.uid == 0 ? 0 : -EPERM;
}

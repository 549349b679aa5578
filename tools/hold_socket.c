/* SPDX-License-Identifier: MIT */
/* Opens the socket of refrain-hold; see hold_socket.h. */
#include "hold_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Is this a socket on which no process listens any more? */
static bool is_left(const struct sockaddr_un *at)
{
	struct stat st;
	bool refused;
	int fd;

	if (lstat(at->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
		st.st_uid != geteuid())
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	refused = connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 &&
		errno == ECONNREFUSED;
	(void)close(fd);
	return refused;
}

/* Bind the socket with mode 0600. */
static int socket_bind(int fd, const struct sockaddr_un *at, socklen_t len)
{
	mode_t mask = umask(0177);
	int rc = bind(fd, (const struct sockaddr *)at, len) < 0 ? -errno : 0;

	(void)umask(mask);
	return rc;
}

static int bind_path(struct hold_socket *s)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct stat st;
	int rc;

	if (strlen(s->path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	(void)strcpy(at.sun_path, s->path);
	if (is_left(&at))
		(void)unlink(s->path);
	rc = socket_bind(s->fd, &at, sizeof(at));
	if (rc == 0 && lstat(s->path, &st) == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	return rc;
}

static int bind_abstract(struct hold_socket *s)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(at);
	int rc = socket_bind(s->fd, &at, sizeof(sa_family_t));

	if (rc < 0)
		return rc;
	if (getsockname(s->fd, (struct sockaddr *)&at, &len) < 0)
		return -errno;
	(void)snprintf(s->address, sizeof(s->address), "@%.*s",
		(int)(len - offsetof(struct sockaddr_un, sun_path) - 1),
		at.sun_path + 1);
	return 0;
}

int hold_socket_open(struct hold_socket *s, const char *path)
{
	int one = 1;

	*s = (struct hold_socket){.path = path};
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0 ||
		setsockopt(s->fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) <
			0)
		return -errno;
	return path ? bind_path(s) : bind_abstract(s);
}

void hold_socket_remove(const struct hold_socket *s)
{
	struct stat st;

	if (s->path && s->ino != 0 && lstat(s->path, &st) == 0 &&
		st.st_dev == s->dev && st.st_ino == s->ino)
		(void)unlink(s->path);
}

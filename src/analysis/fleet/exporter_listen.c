/* SPDX-License-Identifier: MIT */
/* Parses an address and listens at it. No state. */
#include "analysis/fleet/exporter_listen_impl.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/control/unix_socket.h"

#define BACKLOG 64
#define HOST_ROOM 256

/* Returns the path of "unix:PATH", or NULL. */
static const char *unix_path(const char *where)
{
	return strncmp(where, "unix:", 5) == 0 ? where + 5 : NULL;
}

/* Listen at a path. If a socket exists there on which nobody listens, it was
 * left by an exporter that was killed, and is removed. */
static int listen_unix(const char *path, struct error *err)
{
	int fd = socket_connect(path, SOCK_STREAM);

	if (fd >= 0) {
		(void)close(fd);
		return error_set(err, -EADDRINUSE,
			"another process listens on '%s'", path);
	}
	if (fd == -ECONNREFUSED)
		/* if this fails, socket_listen() reports it */
		(void)unlink(path);
	fd = socket_listen(path, SOCK_STREAM, 0660, (gid_t)-1);
	return fd < 0 ? error_set(err, fd, "cannot listen on '%s': %m", path)
		      : fd;
}

static int bad_address(const char *where, struct error *err)
{
	return error_set(err, -EINVAL,
		"'%s' is not a valid address; give 127.0.0.1:9760, [::1]:9760 "
		"or unix:PATH",
		where);
}

/* Split ADDR:PORT; an IPv6 address is in brackets. */
static int split(const char *where, char host[HOST_ROOM], const char **port,
	struct error *err)
{
	const char *colon = strrchr(where, ':');
	size_t len = colon ? (size_t)(colon - where) : 0;

	if (!colon || len == 0 || len >= HOST_ROOM || !colon[1] ||
		strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return bad_address(where, err);
	if (where[0] == '[' && where[len - 1] == ']') {
		where++;
		len -= 2;
	}
	(void)snprintf(host, HOST_ROOM, "%.*s", (int)len, where);
	*port = colon + 1;
	return 0;
}

/* Convert a numeric address; no name server is asked. */
static struct addrinfo *address_of(const char *host, const char *port)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *found = NULL;

	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	return getaddrinfo(host, port, &hints, &found) == 0 ? found : NULL;
}

static int listen_at(const struct addrinfo *at)
{
	CLEANUP_FD int fd = socket(
		at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	if (fd < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fd, at->ai_addr, at->ai_addrlen) < 0 ||
		listen(fd, BACKLOG) < 0)
		return -errno;
	return steal_fd(&fd);
}

char *exporter_address(const char *where)
{
	CLEANUP_FREE char *here = NULL;
	const char *path = unix_path(where);
	char *absolute = NULL;

	if (!path || path[0] == '/')
		return strdup(where);
	here = getcwd(NULL, 0);
	if (!here || asprintf(&absolute, "unix:%s/%s", here, path) < 0)
		return NULL;
	return absolute;
}

int exporter_listen(const char *where, struct error *err)
{
	const char *path = unix_path(where), *port = NULL;
	struct addrinfo *at;
	char host[HOST_ROOM];
	int rc;

	if (path)
		return listen_unix(path, err);
	rc = split(where, host, &port, err);
	if (rc < 0)
		return rc;
	at = address_of(host, port);
	if (!at)
		return bad_address(where, err);
	rc = listen_at(at);
	freeaddrinfo(at);
	return rc < 0 ? error_set(err, rc, "cannot listen on '%s': %m", where)
		      : rc;
}

void exporter_unlisten(const char *where)
{
	if (unix_path(where))
		(void)unlink(unix_path(where));
}

/* SPDX-License-Identifier: MIT */
/*
 * Going into the background and telling about it. The process forks before
 * it has threads; the parent waits at a pipe for one byte that says ready, or
 * for the line that says why not. systemd is told by its own datagram.
 */
#include "daemon/mount_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The first byte on the pipe: READY, or FAILED, followed by -errno and a
 * message. */
#define SAY_READY 'r'
#define SAY_FAILED 'f'

struct failure {
	char say;
	int rc;
	char msg[sizeof(((struct error *)NULL)->msg)];
};

static int wait_for_child(int fd, struct error *err)
{
	struct failure f = {0};
	char *buf = (char *)&f;
	size_t n = 0;

	while (n < sizeof(f) - 1) {
		ssize_t got = read(fd, buf + n, sizeof(f) - 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (n > 0 && f.say == SAY_READY)
		return 0;
	if (n > offsetof(struct failure, msg) && f.say == SAY_FAILED)
		return error_set(err, f.rc, "%s", f.msg);
	return error_set(err, -EIO,
		"the daemon died while starting; try --foreground to see why");
}

int background_fork(struct mount *m, struct error *err, bool *parent)
{
	int fd[2];
	pid_t pid;

	*parent = false;
	m->ready_fd = -1;
	if (m->options.foreground)
		return 0;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot start the daemon: %m");
	pid = fork();
	if (pid < 0) {
		int rc = error_set(err, -errno, "cannot start the daemon: %m");

		(void)close(fd[0]);
		(void)close(fd[1]);
		return rc;
	}
	if (pid > 0) {
		int rc;

		(void)close(fd[1]);
		*parent = true;
		rc = wait_for_child(fd[0], err);
		(void)close(fd[0]);
		/* Clean up before reporting a failure, so that nothing is left.
		 */
		if (rc < 0)
			(void)waitpid(pid, NULL, 0);
		return rc;
	}
	(void)close(fd[0]);
	(void)setsid(); /* a child is no group leader, so this works */
	m->ready_fd = fd[1];
	return 0;
}

/* Nothing of the caller's terminal or working directory is kept. */
static void let_go(void)
{
	CLEANUP_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0)
		for (int fd = 0; fd <= 2; fd++)
			(void)dup2(null, fd);
	if (chdir("/") < 0)
		return; /* then the working directory stays busy, no more */
}

void background_ready(struct mount *m)
{
	notify_systemd("READY=1");
	if (m->ready_fd < 0)
		return;
	log_detach(m->log);
	let_go();
	(void)!write(m->ready_fd, (char[]){SAY_READY}, 1);
	(void)close(m->ready_fd);
	m->ready_fd = -1;
}

void background_failed(struct mount *m, int rc, const struct error *err)
{
	struct failure f = {.say = SAY_FAILED, .rc = rc};

	(void)snprintf(f.msg, sizeof(f.msg), "%s", err->msg);
	/* A parent that has gone does not mind. */
	(void)!write(m->ready_fd, &f, sizeof(f));
	(void)close(m->ready_fd);
	m->ready_fd = -1;
}

/* The protocol of sd_notify(3): one datagram to the socket in NOTIFY_SOCKET. */
void notify_systemd(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	CLEANUP_FD int fd = -1;
	size_t len;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	len = strlen(path);
	if (len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Nobody listens: then nobody wants to know. */
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		(struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

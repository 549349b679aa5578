/* SPDX-License-Identifier: MIT */
/* Makes calls in a child process; see probe.h. The caller has all state. */
#include "common/base/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int probe_start(struct probe *probe, void (*run)(void *arg, int to), void *arg)
{
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	probe->pid = fork();
	if (probe->pid == 0) {
		run(arg, fds[1]);
		_exit(0);
	}
	rc = probe->pid < 0 ? -errno : 0;
	(void)close(fds[1]);
	if (rc < 0)
		(void)close(fds[0]);
	probe->fd = fds[0];
	return rc;
}

bool probe_wait(const struct probe *probe, int timeout_ms)
{
	struct pollfd pfd = {.fd = probe->fd, .events = POLLIN};
	int rc;

	do
		rc = poll(&pfd, 1, timeout_ms);
	while (rc < 0 && errno == EINTR);
	return rc != 0;
}

void probe_end(struct probe *probe)
{
	bool hangs = !probe_wait(probe, 0);

	(void)kill(probe->pid, SIGKILL);
	(void)waitpid(probe->pid, NULL, hangs ? WNOHANG : 0);
	(void)close(probe->fd);
}

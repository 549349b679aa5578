/* SPDX-License-Identifier: MIT */
/*
 * Starts the process that notifies the kernel of changed names, so that a
 * killed daemon can end; see common/base/notifier.h. refrain-hold forks the
 * process, so that it is not in the daemon's control group or PID namespace,
 * because the end of these would wait for it. systemd cannot fork it, so a
 * daemon of a unit does so itself, before it has threads; such a daemon cannot
 * replace the process. A mount that ends with its daemon needs no such process.
 */
#include "mount/daemon/mount_impl.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/magic.h"
#include "common/base/notifier.h"

/* Ask refrain-hold for a new notifier. Returns this daemon's end of a pair of
 * sockets; the notifier gets the other end. */
static int notifier_ask(void)
{
	int end[2];

	if (notifier_pair(end) < 0)
		return -1;
	/* An older refrain-hold does not know this request, and closes the
	 * descriptor. */
	notify_holder("X_REFRAIN_NOTIFIER=1", end[1]);
	(void)close(end[1]);
	return end[0];
}

static void notifier_fork(struct mount *m)
{
	pid_t parent = getpid();
	int end[2];

	if (notifier_pair(end) < 0)
		return;
	m->notifier = fork();
	if (m->notifier == 0) {
		/* Have the kernel kill this process when the daemon ends.
		 * SIGKILL works even while the process is stopped. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		notifier_run(end[1]);
	}
	(void)close(end[1]);
	if (m->notifier > 0) {
		m->notifier_fd = end[0];
		return;
	}
	m->notifier = 0;
	(void)close(end[0]);
}

void notifier_start(struct mount *m)
{
	if (!held_by_somebody())
		return;
	/* After an upgrade, this process still has the notifier of the previous
	 * program as its child. Reap it. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (held_by_hold())
		m->notifier_fd = notifier_ask();
	else
		notifier_fork(m);
}

int notifier_again(void *mount)
{
	struct mount *m = OBJECT(mount, mount);

	notifier_end(m);
	if (held_by_hold())
		m->notifier_fd = notifier_ask();
	return m->notifier_fd;
}

void notifier_end(struct mount *m)
{
	if (m->notifier_fd >= 0)
		(void)close(m->notifier_fd);
	m->notifier_fd = -1;
	if (m->notifier == 0)
		return;
	/* The process may hang in the kernel, so do not wait for its end. */
	(void)kill(m->notifier, SIGKILL);
	(void)waitpid(m->notifier, NULL, WNOHANG);
	m->notifier = 0;
}

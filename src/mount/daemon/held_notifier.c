/* SPDX-License-Identifier: MIT */
/*
 * The process that notifies the kernel of changed names, so that a killed
 * daemon can end; see common/base/notifier.h. refrain-hold forks it, so that
 * it is not in the daemon's control group or PID namespace, whose end would
 * wait for it. systemd cannot, so a daemon of a unit forks it before it has
 * threads, and cannot replace it. A mount that ends with its daemon has none.
 */
#include "mount/daemon/mount_impl.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/magic.h"
#include "common/base/notifier.h"

/* The other end of the pair is the new process's. */
static int notifier_ask(void)
{
	int end[2];

	if (notifier_pair(end) < 0)
		return -1;
	/* A holder that does not know this closes the descriptor. */
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
		/* It ends with the daemon even if it is stopped. */
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
	/* Reap that of the program before, whose process this is. */
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
	/* One that still waits in the kernel is left. */
	(void)kill(m->notifier, SIGKILL);
	(void)waitpid(m->notifier, NULL, WNOHANG);
	m->notifier = 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The notifiers: processes that make calls that can hang in the kernel, so that
 * a killed daemon can end; see common/base/notifier.h. refrain-hold forks them,
 * so that they are not in the daemon's control group or PID namespace, whose
 * end would wait for them. systemd cannot fork them, so a daemon of a unit
 * forks them before it has threads, and cannot replace them. A mount that ends
 * with its daemon has no notifiers.
 */
#include "mount/daemon/mount_impl.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/notifier.h"

/* Indexed by enum notifier_kind. */
static const struct {
	const char *comm;
	const char *ask; /* text of the request to refrain-hold */
	enum event_kind replaced, lost;
} notifier_kinds[] = {
	{NOTIFIER_COMM, "X_REFRAIN_NOTIFIER=1", EVENT_NOTIFIER_REPLACED,
		EVENT_NOTIFIER_LOST},
	{NOTIFIER_PAGES_COMM, "X_REFRAIN_PAGES=1", EVENT_DROPPER_REPLACED,
		EVENT_DROPPER_LOST},
};

/* Have refrain-hold start a notifier, which gets the other end of the socket
 * pair. Returns the daemon's end, or -errno. */
static int notifier_ask(enum notifier_kind kind)
{
	int end[2];

	if (notifier_pair(end) < 0)
		return -1;
	/* A refrain-hold that does not know this request closes the descriptor
	 * that came with it. */
	notify_holder(notifier_kinds[kind].ask, end[1]);
	(void)close(end[1]);
	return end[0];
}

/* Fork a notifier. Returns its socket, or -1. */
static int notifier_fork(struct notifier *n)
{
	pid_t parent = getpid();
	int end[2];

	if (notifier_pair(end) < 0)
		return -1;
	n->pid = fork();
	if (n->pid == 0) {
		/* The notifier ends with the daemon even if it is stopped. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		notifier_run(end[1], notifier_kinds[n->kind].comm);
	}
	(void)close(end[1]);
	if (n->pid > 0)
		return end[0];
	n->pid = 0;
	(void)close(end[0]);
	return -1;
}

/* Kill a notifier. If it still waits in the kernel, leave it there. */
static void notifier_kill(struct notifier *n)
{
	if (n->pid == 0)
		return;
	(void)kill(n->pid, SIGKILL);
	(void)waitpid(n->pid, NULL, WNOHANG);
	n->pid = 0;
}

/* Start another notifier. The agent calls this when the old one has ended, or
 * is useless. */
static int notifier_again(void *arg)
{
	struct notifier *n = arg;

	notifier_kill(n);
	return held_by_hold() ? notifier_ask(n->kind) : -1;
}

static bool notifier_wanted(const struct mount *m, enum notifier_kind kind)
{
	return held_by_somebody() &&
		(kind == NOTIFIER_NAMES ||
			(m->options.pages_bytes > 0 && !m->options.hooks));
}

void notifiers_start(struct mount *m)
{
	/* Reap the notifiers of the previous program, which ran in this
	 * process. */
	while (held_by_somebody() && waitpid(-1, NULL, WNOHANG) > 0)
		;
	for (unsigned i = 0; i < NOTIFIER_KINDS; i++) {
		struct notifier *n = &m->notifier[i];

		*n = (struct notifier){.kind = i, .socket = -1};
		if (notifier_wanted(m, i))
			n->socket = held_by_hold() ? notifier_ask(i)
						   : notifier_fork(n);
	}
}

int notifiers_connect(struct mount *m, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < NOTIFIER_KINDS; i++) {
		struct notifier *n = &m->notifier[i];
		struct agent_config config = {
			.replaced = notifier_kinds[i].replaced,
			.lost = notifier_kinds[i].lost,
			.again = notifier_again,
			.arg = n,
			.events = m->events,
			.mountpoint = m->mountpoint,
		};

		if (n->socket < 0)
			continue;
		rc = agent_new(&n->agent, &config, n->socket, err);
		if (rc == 0)
			/* the socket belongs to the agent now */
			n->socket = -1;
	}
	return rc;
}

void notifiers_end(struct mount *m)
{
	for (unsigned i = 0; i < NOTIFIER_KINDS; i++) {
		struct notifier *n = &m->notifier[i];

		agent_free(n->agent);
		if (n->socket >= 0)
			(void)close(n->socket);
		n->agent = NULL;
		n->socket = -1;
		notifier_kill(n);
	}
}

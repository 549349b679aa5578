/* SPDX-License-Identifier: MIT */
/*
 * Signals. A thread of its own waits for them, so that no handler ever runs
 * in the middle of anything.
 */
#include "daemon/mount_impl.h"

#include <signal.h>

#include "base/err.h"

/* A start may be waited for as long as it makes progress. */
static void wait_until_built(struct mount *m)
{
	pthread_mutex_lock(&m->lock);
	while (!m->serving && !m->stopping) {
		if (m->asking)
			mount_give_up(m);
		pthread_cond_wait(&m->cond, &m->lock);
	}
	pthread_mutex_unlock(&m->lock);
}

/* The signal that ends the mount. SIGHUP does if there is no log file. */
static int wait_for_signal(struct mount *m)
{
	sigset_t set;
	int sig;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	while (sigwait(&set, &sig) != 0 ||
		(sig == SIGHUP && log_reopen(m->log)))
		;
	return sig;
}

static void *signal_main(void *arg)
{
	struct mount *m = arg;
	int sig = wait_for_signal(m);

	/* Our own, of signals_stop(), comes when the mount has gone. */
	pthread_mutex_lock(&m->lock);
	m->signal = m->stopping ? 0 : sig;
	pthread_mutex_unlock(&m->lock);
	notify_systemd("STOPPING=1");
	wait_until_built(m);
	mount_set_stopping(m);
	mount_quiesce(m);
	if (m->fs)
		fs_exit(m->fs);
	return NULL;
}

/* Before any thread is made, so that all inherit it. */
void signals_block(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

int signals_start(struct mount *m, struct error *err)
{
	int rc = -pthread_create(&m->signal_thread, NULL, signal_main, m);

	if (rc < 0)
		return error_set(err, rc, "cannot start a thread: %m");
	m->signal_started = true;
	return 0;
}

void signals_stop(struct mount *m)
{
	if (!m->signal_started)
		return;
	(void)pthread_kill(m->signal_thread, SIGTERM);
	pthread_join(m->signal_thread, NULL);
	m->signal_started = false;
}

/* SPDX-License-Identifier: MIT */
/* Opens a loader in a thread of its own. If storage hangs, refrain_open() takes
 * as long as its time limit. During that time the caller looks for signals. If
 * a signal handler raises an exception, the caller leaves the thread behind,
 * and the thread closes the loader that it has opened. */
#include "ext_impl.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGE_MAX 1024

/* A running call of refrain_open(). The lock guards the members below it. The
 * last of the two threads that use this frees it. */
struct opening {
	struct refrain_config config; /* set once */
	pthread_mutex_t lock;
	pthread_cond_t done_c;
	bool done, left;
	int rc;
	struct refrain_loader *l;
	char message[MESSAGE_MAX];
};

static void opening_free(struct opening *o)
{
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->done_c);
	free(o);
}

static void *opening_run(void *arg)
{
	struct opening *o = arg;
	struct refrain_loader *l = NULL;
	int rc = refrain_open(&l, &o->config);
	bool left;

	pthread_mutex_lock(&o->lock);
	o->rc = rc;
	o->l = l;
	if (rc < 0)
		(void)snprintf(o->message, MESSAGE_MAX, "%s",
			/* a message that is too long is cut */
			refrain_message(NULL));
	o->done = true;
	left = o->left;
	pthread_cond_signal(&o->done_c);
	pthread_mutex_unlock(&o->lock);
	if (left) {
		/* no caller is left that could be told */
		(void)refrain_close(l);
		opening_free(o);
	}
	return NULL;
}

static struct opening *opening_new(const struct refrain_config *config)
{
	struct opening *o = calloc(1, sizeof(*o));
	pthread_condattr_t attr;

	if (!o)
		return NULL;
	o->config = *config;
	pthread_mutex_init(&o->lock, NULL);
	(void)pthread_condattr_init(&attr); /* cannot fail on Linux */
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&o->done_c, &attr);
	(void)pthread_condattr_destroy(&attr);
	return o;
}

/* Start the thread. It blocks all signals, which are for the program's own
 * threads. */
static int opening_start(struct opening *o)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail */
	rc = pthread_create(&thread, NULL, opening_run, o);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		(void)pthread_detach(thread);
	return -rc;
}

/* Wait, without the GIL, until the loader is open or LOOK_MS are over. Returns
 * true if it is open. */
static bool opening_wait(struct opening *o)
{
	struct timespec until;
	bool done;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&o->lock);
	while (!o->done &&
		pthread_cond_timedwait(&o->done_c, &o->lock, &until) == 0)
		;
	done = o->done;
	pthread_mutex_unlock(&o->lock);
	return done;
}

/* Leave the thread behind. The thread frees `o` at its end; if it has ended
 * already, this function does. */
static void opening_leave(struct opening *o)
{
	bool done;

	pthread_mutex_lock(&o->lock);
	o->left = true;
	done = o->done;
	pthread_mutex_unlock(&o->lock);
	if (!done)
		return;
	Py_BEGIN_ALLOW_THREADS(void) refrain_close(o->l);
	Py_END_ALLOW_THREADS opening_free(o);
}

int core_open(struct core *core, const struct refrain_config *config,
	PyObject *hold, PyObject *path)
{
	struct opening *o = opening_new(config);
	bool done = false;
	int rc;

	if (!o || opening_start(o) < 0) {
		free(o);
		(void)PyErr_NoMemory();
		return -1;
	}
	while (!done) {
		Py_BEGIN_ALLOW_THREADS done = opening_wait(o);
		Py_END_ALLOW_THREADS if (PyErr_CheckSignals() == 0) continue;
		/* the thread still reads the memory of `hold` */
		Py_INCREF(hold);
		(void)core_ref(core);
		opening_leave(o);
		return -1;
	}
	rc = o->rc;
	core->l = o->l;
	core->shares = config->share != NULL;
	if (rc < 0)
		(void)raise_open(rc, o->message, path);
	opening_free(o);
	return rc < 0 ? -1 : 0;
}

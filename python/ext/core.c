/* SPDX-License-Identifier: MIT */
/* The library's handle, which a Loader and its batches share. A thread calls
 * functions of this file with the GIL. Only one thread at a time waits for a
 * batch. Closing waits until no call is inside the library any more. */
#include "ext_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct core *core_new(void)
{
	struct core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	core->refs = 1;
	core->pid = getpid();
	core->turn = PyThread_allocate_lock();
	if (!core->turn) {
		free(core);
		return NULL;
	}
	return core;
}

struct core *core_ref(struct core *core)
{
	core->refs++;
	return core;
}

void core_unref(struct core *core)
{
	if (!core || --core->refs > 0)
		return;
	Py_CLEAR(core->decode);
	Py_CLEAR(core->augment);
	Py_CLEAR(core->cause);
	PyThread_free_lock(core->turn);
	free(core);
}

struct refrain_loader *core_handle(struct core *core)
{
	if (core->pid != getpid()) {
		(void)raise_error(NULL, -ECHILD,
			"the loader was opened before fork(): open another "
			"one in this process");
		return NULL;
	}
	if (core->l && !core->closing)
		return core->l;
	(void)raise_error(NULL, -ESHUTDOWN, "the loader is closed");
	return NULL;
}

/* -- The next batch -------------------------------------------------------- */

static double now_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Wait for the turn to ask for a batch. Returns 0, or -1 with an exception: a
 * signal handler has raised one, or the loader is closed. */
static int take_turn(struct core *core)
{
	while (PyThread_acquire_lock(core->turn, NOWAIT_LOCK) == 0) {
		PyLockStatus got;

		Py_BEGIN_ALLOW_THREADS got = PyThread_acquire_lock_timed(
			core->turn, LOOK_MS * 1000, 0);
		Py_END_ALLOW_THREADS if (got == PY_LOCK_ACQUIRED) break;
		if (PyErr_CheckSignals() < 0 || !core_handle(core))
			return -1;
	}
	if (core_handle(core))
		return 0;
	PyThread_release_lock(core->turn);
	return -1;
}

/* Ask the library for a batch, for a limited time, without the GIL. */
static int next_for(struct core *core, const struct refrain_batch **out, int ms)
{
	int rc;

	core->inside++;
	Py_BEGIN_ALLOW_THREADS rc = refrain_next(core->l, out, ms);
	Py_END_ALLOW_THREADS core->inside--;
	return rc;
}

/* Ask without waiting. If the library has no free batch, collect garbage and
 * ask again: unreachable objects may have batches. */
static int next_at_once(struct core *core, const struct refrain_batch **out)
{
	int rc = refrain_next(core->l, out, 0);

	if (rc != -EBUSY || !core->l)
		return rc;
	(void)PyGC_Collect();
	return core->l ? refrain_next(core->l, out, 0) : -ESHUTDOWN;
}

static int failed(struct core *core, int rc)
{
	if (rc == -ESHUTDOWN || core->closing || !core->l)
		(void)raise_error(NULL, -ESHUTDOWN, "the loader is closed");
	else
		(void)raise_error(core, rc, refrain_message(core->l));
	return -1;
}

static int wait_for_batch(
	struct core *core, const struct refrain_batch **out, double timeout_s)
{
	double until_s = timeout_s < 0 ? 0 : now_s() + timeout_s;
	int rc = next_at_once(core, out);

	while (rc == -ETIMEDOUT) {
		double left_ms =
			timeout_s < 0 ? LOOK_MS : (until_s - now_s()) * 1e3;

		if (left_ms <= 0)
			break;
		rc = next_for(core, out,
			left_ms < LOOK_MS ? (int)left_ms + 1 : LOOK_MS);
		if (PyErr_CheckSignals() < 0) {
			core->pending = rc == 1 ? *out : NULL;
			return -1;
		}
		if (core->closing && rc != 1)
			rc = -ESHUTDOWN;
	}
	return rc < 0 ? failed(core, rc) : rc;
}

int core_next(
	struct core *core, const struct refrain_batch **out, double timeout_s)
{
	int rc;

	if (take_turn(core) < 0)
		return -1;
	*out = core->pending;
	core->pending = NULL;
	rc = *out ? 1 : wait_for_batch(core, out, timeout_s);
	PyThread_release_lock(core->turn);
	return rc;
}

/* -- Closing --------------------------------------------------------------- */

/* Wait until no thread is inside the library. Each of them looks at intervals
 * whether the loader is closed. */
static void wait_until_outside(const struct core *core)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	while (core->inside > 0) {
		Py_BEGIN_ALLOW_THREADS(void) nanosleep(&pause, NULL);
		Py_END_ALLOW_THREADS
	}
}

int core_close(struct core *core)
{
	struct refrain_loader *l = core->l;
	int left;

	if (!l || core->closing)
		return 0;
	core->closing = true;
	if (core->pid == getpid())
		wait_until_outside(core);
	core->l = NULL;
	refrain_release(core->pending);
	core->pending = NULL;
	Py_BEGIN_ALLOW_THREADS left = refrain_close(l);
	Py_END_ALLOW_THREADS if (left && (core->decode || core->augment))(void)
		/* a thread that was left behind may still call the callbacks */
		core_ref(core);
	return left;
}

/* -- Its position ---------------------------------------------------------- */

PyObject *core_state(struct core *core, uint64_t step)
{
	struct refrain_loader *l = core_handle(core);
	char state[REFRAIN_STATE_MAX];
	int n;

	if (!l)
		return NULL;
	n = refrain_save_at(l, step, state, sizeof(state));
	if (n < 0)
		return raise_error(NULL, n, refrain_message(l));
	return Py_BuildValue("{s:i,s:y#,s:K}", "refrain", 1, "state", state,
		(Py_ssize_t)n, "step", (unsigned long long)step);
}

/* SPDX-License-Identifier: MIT */
/*
 * Shared by workers.c, which owns the threads, and make_serving.c, which makes
 * one serving from the data of its original.
 */
#ifndef ENGINE_MAKE_SERVING_IMPL_H
#define ENGINE_MAKE_SERVING_IMPL_H

#include <pthread.h>
#include <sched.h>

#include "common/base/magic.h"
#include "loader/engine/workers_impl.h"
#include "loader/engine/sample.h"

/* A thread that decodes and augments. */
struct worker {
	uint32_t magic;
	struct workers *all;
	const struct engine_parts *parts;
	pthread_t thread;
	bool started;
	struct sampler *sampler;
	struct field_maker *fields; /* NULL: there are no fields */
	struct desk *desk;
};

struct workers {
	/* Set once. */
	const struct engine_parts *parts;
	cpu_set_t cpus; /* processors on which workers may run */
	struct worker *table;
	uint32_t count;
	uint32_t running; /* number of running threads; guarded by the lock */
};

/*
 * Make a serving. `state` is the state that its original had: KEPT, FAILED, or
 * ENCODED, in which case it is WORKING now, for this worker. The caller holds
 * the turn's lock, which is released during the call. Returns false if the
 * original failed or was put back: then the serving still waits.
 */
bool serving_make(
	struct worker *w, struct serving *s, enum original_state state);

/* Make a serving from the sample that was pulled for it, and end the pull.
 * Called like serving_make(). */
void serving_finish(struct worker *w, struct serving *s);

#endif

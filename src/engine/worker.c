/* SPDX-License-Identifier: MIT */
/*
 * The threads that decode and augment: each takes the oldest serving that is
 * ready, makes it, and looks at what can go on because of it. A worker that
 * finds nothing sleeps; nothing here waits for a time.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "engine/engine_impl.h"

/* -- Servings -------------------------------------------------------------- */

/* Its place in the batch is filled. */
static void finish(struct engine *engine, struct serving *s)
{
	struct step *st = s->step;
	struct entry *e = s->entry;

	s->state = SERVING_DONE;
	st->left--;
	entry_served(engine, e, s->echo);
	entry_settle(engine, e);
}

/* Memory that a decoder or augmenter has taken for good. */
static void charge_worker(struct worker *w)
{
	struct memory *m = &w->engine->memory;
	uint64_t held = sampler_memory_bytes(w->sampler);

	if (held > w->charged)
		memory_charge_over(m, held - w->charged);
	else
		memory_uncharge(m, w->charged - held);
	w->engine->workers_bytes += held - w->charged;
	w->charged = held;
}

static void work(struct worker *w, struct serving *s)
{
	struct engine *engine = w->engine;
	struct entry *e = s->entry;
	enum entry_state state = e->state;
	enum refrain_stage_name stage = state == ENTRY_ENCODED
		? REFRAIN_STAGE_DECODE
		: REFRAIN_STAGE_AUGMENT;
	uint64_t now_ns = meter_now_ns(engine->meter);
	bool made;

	if (state != ENTRY_ENCODED && state != ENTRY_KEPT &&
		state != ENTRY_FAILED) {
		s->state = SERVING_WAITS; /* another worker was faster */
		list_add_tail(&e->waiting, &s->node);
		return;
	}
	s->state = SERVING_WORKS;
	meter_stats(engine->meter)->stages[stage].wait_ns +=
		now_ns - s->since_ns;
	s->since_ns = now_ns;
	if (state == ENTRY_ENCODED)
		entry_state(engine, e, ENTRY_WORKING);
	engine->working++;
	w->busy = true;
	made = serving_make(w, s, state);
	engine->working--;
	w->busy = false;
	charge_worker(w);
	if (made)
		finish(engine, s);
}

/* -- The thread ------------------------------------------------------------ */

static void be_nice(const struct engine *engine)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	/* Failures are ignored: they only make things slower. */
	if (engine->s.c.nice)
		(void)setpriority(PRIO_PROCESS, (id_t)tid,
			getpriority(PRIO_PROCESS, (id_t)tid) +
				engine->s.c.nice);
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct engine *engine = w->engine;

	be_nice(engine);
	turn_lock(&engine->turn);
	while (!engine->closing) {
		struct serving *s;

		if (engine->alone) {
			turn_wait(&engine->turn, TURN_WORKERS);
			continue;
		}
		if (planner_wants(engine)) {
			planner_run(engine);
			continue;
		}
		s = steps_take(engine->steps);
		if (s)
			work(w, s);
		else
			turn_wait(&engine->turn, TURN_WORKERS);
	}
	engine->running--;
	turn_mark(&engine->turn, TURN_CLOSER);
	turn_unlock(&engine->turn);
	return NULL;
}

/* -- Life ------------------------------------------------------------------ */

int workers_init(struct engine *engine, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < engine->s.c.cpu_count; i++)
		CPU_SET(engine->s.c.cpus[i], &engine->cpus);
	engine->threads = engine->s.c.threads;
	engine->workers = calloc(engine->threads, sizeof(*engine->workers));
	if (!engine->workers)
		return error_set(err, -ENOMEM, "no memory for the workers");
	for (uint32_t i = 0; rc == 0 && i < engine->threads; i++) {
		struct worker *w = &engine->workers[i];

		w->engine = engine;
		rc = sampler_new(&w->sampler, &engine->s);
		if (rc == 0)
			charge_worker(w);
	}
	return rc < 0 ? error_set(err, rc, "cannot make a worker: %m") : 0;
}

/* -EINVAL if the process may use none of the processors. */
static int start_thread(struct engine *engine, struct worker *w)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	if (engine->s.c.cpu_count)
		rc = pthread_attr_setaffinity_np(
			&attr, sizeof(engine->cpus), &engine->cpus);
	if (!rc)
		rc = pthread_create(&w->thread, &attr, worker_thread, w);
	(void)pthread_attr_destroy(&attr); /* cannot fail on Linux */
	return -rc;
}

/* Signals are for the threads of the program. */
int workers_start(struct engine *engine, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < engine->threads; i++) {
		struct worker *w = &engine->workers[i];

		turn_lock(&engine->turn);
		engine->running++;
		turn_unlock(&engine->turn);
		rc = start_thread(engine, w);
		w->started = rc == 0;
		if (rc == 0)
			continue;
		turn_lock(&engine->turn);
		engine->running--;
		turn_unlock(&engine->turn);
	}
	if (rc == -EINVAL && engine->s.c.cpu_count)
		return error_set(err, rc,
			"cpus: this process may use none of these processors");
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

uint64_t workers_cpu_ns(const struct engine *engine)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < engine->threads; i++)
		if (engine->workers[i].started)
			ns += clock_cpu_of_ns(engine->workers[i].thread);
	return ns;
}

bool workers_stop(struct engine *engine, uint64_t until_ns)
{
	bool ended;

	turn_lock(&engine->turn);
	while (engine->running > 0)
		if (!turn_wait_until(&engine->turn, TURN_CLOSER, until_ns))
			break;
	ended = engine->running == 0;
	turn_unlock(&engine->turn);
	for (uint32_t i = 0; engine->workers && i < engine->threads; i++) {
		if (!engine->workers[i].started)
			continue;
		if (ended)
			pthread_join(engine->workers[i].thread, NULL);
		else
			pthread_detach(engine->workers[i].thread);
	}
	return ended;
}

void workers_release(struct engine *engine)
{
	for (uint32_t i = 0; engine->workers && i < engine->threads; i++) {
		struct worker *w = &engine->workers[i];

		sampler_free(w->sampler);
		memory_put(&engine->memory, w->scratch);
	}
	free(engine->workers);
}

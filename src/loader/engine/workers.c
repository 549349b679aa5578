/* SPDX-License-Identifier: MIT */
/*
 * The threads that decode and augment. Each takes the oldest queued serving,
 * makes it, and starts the work that has become possible. A worker without work
 * sleeps until it is woken.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/magic.h"
#include "loader/engine/make_fields_impl.h"
#include "loader/engine/make_serving_impl.h"
#include "loader/engine/pulled_impl.h"

/* -- Servings -------------------------------------------------------------- */

static void work_pulled(struct worker *w, struct serving *s)
{
	s->state = SERVING_WORKS;
	budget_begin_work(w->all->parts->budget, w->desk);
	serving_finish(w, s);
	budget_end_work(w->all->parts->budget, w->desk);
	budget_charge(w->all->parts->budget, w->desk);
}

static void work(struct worker *w, struct serving *s)
{
	struct workers *all = w->all;
	enum refrain_stage_name stage = REFRAIN_STAGE_AUGMENT;
	uint64_t now_ns = meter_now_ns(all->parts->meter);
	struct original *o = s->original;
	enum original_state state;
	bool made;

	if (s->pull.state != PULL_NONE) {
		work_pulled(w, s);
		return;
	}
	if (!original_take(all->parts->pool, s, &state))
		return; /* another worker has the file */
	if (state == ORIGINAL_ENCODED)
		stage = REFRAIN_STAGE_DECODE;
	s->state = SERVING_WORKS;
	meter_stats(all->parts->meter)->stages[stage].wait_ns +=
		now_ns - s->since_ns;
	s->since_ns = now_ns;
	budget_begin_work(all->parts->budget, w->desk);
	made = serving_make(w, s, state);
	budget_end_work(all->parts->budget, w->desk);
	budget_charge(all->parts->budget, w->desk);
	if (!made)
		return;
	original_served(all->parts->pool, s);
	original_settle(all->parts->pool, o);
}

/* -- The thread ------------------------------------------------------------ */

static void be_nice(const struct workers *all)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	/* Failures are ignored, because they affect only speed. */
	if (all->parts->c->nice)
		(void)setpriority(PRIO_PROCESS, (id_t)tid,
			getpriority(PRIO_PROCESS, (id_t)tid) +
				all->parts->c->nice);
}

static void wake_puller(const struct engine_parts *parts)
{
	turn_unlock(parts->turn);
	puller_wake(parts->puller);
	turn_lock(parts->turn);
}

static void *worker_thread(void *arg)
{
	struct worker *w = OBJECT(worker, arg);
	struct workers *all = w->all;

	be_nice(all);
	turn_lock(all->parts->turn);
	while (!outcome_closing(all->parts->outcome)) {
		struct serving *s;

		if (budget_is_taken(all->parts->budget)) {
			turn_wait(all->parts->turn, TURN_WORKERS);
			continue;
		}
		if (planner_wants(all->parts->planner)) {
			echo_plan(all->parts->echoes);
			planner_run(all->parts->planner);
			continue;
		}
		if (budget_feeds(all->parts->budget))
			budget_feed(all->parts->budget, w->desk);
		if (puller_take_stirred(all->parts->puller))
			wake_puller(all->parts);
		s = steps_take(all->parts->steps);
		if (s)
			work(w, s);
		else if (!pulled_take_back(all->parts))
			turn_wait(all->parts->turn, TURN_WORKERS);
	}
	all->running--;
	turn_mark(all->parts->turn, TURN_CLOSER);
	turn_unlock(all->parts->turn);
	return NULL;
}

/* -- Creation and end ------------------------------------------------------ */

int workers_new(struct workers **out, const struct engine_parts *parts,
	struct error *err)
{
	struct workers *all = calloc(1, sizeof(*all));
	uint32_t count = parts->c->threads;
	int rc = 0;

	*out = all;
	if (all)
		all->table = calloc(count, sizeof(*all->table));
	if (!all || !all->table)
		return error_set(err, -ENOMEM, "no memory for the workers");
	all->parts = parts;
	all->count = count;
	TURN_LOOK_SCOPE(parts->turn);
	for (uint32_t i = 0; i < parts->c->cpu_count; i++)
		CPU_SET(parts->c->cpus[i], &all->cpus);
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		struct worker *w = &all->table[i];

		MAGIC_BEGIN(w, worker);
		w->all = all;
		w->parts = parts;
		rc = sampler_new(&w->sampler, parts->s);
		if (rc == 0)
			rc = field_maker_new(&w->fields, parts);
		if (rc == 0)
			w->desk = budget_desk(
				parts->budget, i, w->sampler, w->fields);
	}
	return rc < 0 ? error_set(err, rc, "cannot make a worker: %m") : 0;
}

/* Start the thread of a worker. Returns -EINVAL if the process may use none of
 * the configured processors. */
static int start_thread(struct workers *all, struct worker *w)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	if (all->parts->c->cpu_count)
		rc = pthread_attr_setaffinity_np(
			&attr, sizeof(all->cpus), &all->cpus);
	if (!rc)
		rc = pthread_create(&w->thread, &attr, worker_thread, w);
	(void)pthread_attr_destroy(&attr); /* this cannot fail on Linux */
	return -rc;
}

int workers_start(struct workers *all, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < all->count; i++) {
		struct worker *w = &all->table[i];

		turn_lock(all->parts->turn);
		all->running++;
		turn_unlock(all->parts->turn);
		rc = start_thread(all, w);
		w->started = rc == 0;
		if (rc == 0)
			continue;
		turn_lock(all->parts->turn);
		all->running--;
		turn_unlock(all->parts->turn);
	}
	if (rc == -EINVAL && all->parts->c->cpu_count)
		return error_set(err, rc,
			"cpus: this process may not use any of these "
			"processors");
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

uint64_t workers_cpu_ns(const struct workers *all)
{
	uint64_t ns = 0;

	ASSERT_TURN(all->parts->turn);
	for (uint32_t i = 0; i < all->count; i++)
		if (all->table[i].started)
			ns += clock_cpu_of_ns(all->table[i].thread);
	return ns;
}

bool workers_stop(struct workers *all, uint64_t until_ns)
{
	bool ended;

	turn_lock(all->parts->turn);
	while (all->running > 0)
		if (!turn_wait_until(all->parts->turn, TURN_CLOSER, until_ns))
			break;
	ended = all->running == 0;
	turn_unlock(all->parts->turn);
	for (uint32_t i = 0; all->table && i < all->count; i++) {
		if (!all->table[i].started)
			continue;
		if (ended)
			pthread_join(all->table[i].thread, NULL);
		else
			pthread_detach(all->table[i].thread);
	}
	return ended;
}

void workers_free(struct workers *all)
{
	for (uint32_t i = 0; all && i < all->count; i++) {
		sampler_free(all->table[i].sampler);
		field_maker_free(all->table[i].fields);
	}
	if (all)
		free(all->table);
	free(all);
}

uint32_t workers_count(const struct workers *all)
{
	return all->count;
}

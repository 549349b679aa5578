/* SPDX-License-Identifier: MIT */
/*
 * The threads that decode and augment: each takes the oldest serving that is
 * ready, makes it, and starts the work that has become possible. A worker that
 * finds nothing sleeps until it is woken.
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
#include "loader/engine/make_serving_impl.h"

/* -- Servings -------------------------------------------------------------- */

static void work(struct worker *w, struct serving *s)
{
	struct workers *all = w->all;
	enum refrain_stage_name stage = REFRAIN_STAGE_AUGMENT;
	uint64_t now_ns = meter_now_ns(all->use.meter);
	struct original *o = s->original;
	enum original_state state;
	bool made;

	if (!original_take(all->use.pool, s, &state))
		return; /* another worker was faster */
	if (state == ORIGINAL_ENCODED)
		stage = REFRAIN_STAGE_DECODE;
	s->state = SERVING_WORKS;
	meter_stats(all->use.meter)->stages[stage].wait_ns +=
		now_ns - s->since_ns;
	s->since_ns = now_ns;
	budget_begin_work(all->use.budget, w->desk);
	made = serving_make(w, s, state);
	budget_end_work(all->use.budget, w->desk);
	budget_charge(
		all->use.budget, w->desk, sampler_memory_bytes(w->sampler));
	if (!made)
		return;
	original_served(all->use.pool, s);
	original_settle(all->use.pool, o);
}

/* -- The thread ------------------------------------------------------------ */

static void be_nice(const struct workers *all)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	/* Failures are ignored: they only make things slower. */
	if (all->use.s->c.nice)
		(void)setpriority(PRIO_PROCESS, (id_t)tid,
			getpriority(PRIO_PROCESS, (id_t)tid) +
				all->use.s->c.nice);
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct workers *all = w->all;

	be_nice(all);
	turn_lock(all->use.turn);
	while (!outcome_closing(all->use.outcome)) {
		struct serving *s;

		if (budget_is_taken(all->use.budget)) {
			turn_wait(all->use.turn, TURN_WORKERS);
			continue;
		}
		if (planner_wants(all->planner)) {
			echo_plan(all->echoes);
			planner_run(all->planner);
			continue;
		}
		if (budget_feeds(all->use.budget))
			budget_feed(all->use.budget, w->desk);
		s = steps_take(all->use.steps);
		if (s)
			work(w, s);
		else
			turn_wait(all->use.turn, TURN_WORKERS);
	}
	all->running--;
	turn_mark(all->use.turn, TURN_CLOSER);
	turn_unlock(all->use.turn);
	return NULL;
}

/* -- Life ------------------------------------------------------------------ */

int workers_new(struct workers **out, const struct workers_config *config,
	struct error *err)
{
	struct workers *all = calloc(1, sizeof(*all));
	uint32_t count = config->s->c.threads;
	int rc = 0;

	*out = all;
	if (all)
		all->table = calloc(count, sizeof(*all->table));
	if (!all || !all->table)
		return error_set(err, -ENOMEM, "no memory for the workers");
	all->use = *config;
	all->count = count;
	TURN_LOOK_SCOPE(config->turn);
	for (uint32_t i = 0; i < config->s->c.cpu_count; i++)
		CPU_SET(config->s->c.cpus[i], &all->cpus);
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		struct worker *w = &all->table[i];

		w->all = all;
		w->desk = budget_desk(config->budget, i);
		rc = sampler_new(&w->sampler, config->s);
		if (rc == 0)
			budget_charge(config->budget, w->desk,
				sampler_memory_bytes(w->sampler));
	}
	return rc < 0 ? error_set(err, rc, "cannot make a worker: %m") : 0;
}

/* -EINVAL if the process may use none of the processors. */
static int start_thread(struct workers *all, struct worker *w)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	if (all->use.s->c.cpu_count)
		rc = pthread_attr_setaffinity_np(
			&attr, sizeof(all->cpus), &all->cpus);
	if (!rc)
		rc = pthread_create(&w->thread, &attr, worker_thread, w);
	(void)pthread_attr_destroy(&attr); /* cannot fail on Linux */
	return -rc;
}

int workers_start(struct workers *all, struct planner *planner,
	struct echoes *echoes, struct error *err)
{
	int rc = 0;

	all->planner = planner;
	all->echoes = echoes;
	for (uint32_t i = 0; rc == 0 && i < all->count; i++) {
		struct worker *w = &all->table[i];

		turn_lock(all->use.turn);
		all->running++;
		turn_unlock(all->use.turn);
		rc = start_thread(all, w);
		w->started = rc == 0;
		if (rc == 0)
			continue;
		turn_lock(all->use.turn);
		all->running--;
		turn_unlock(all->use.turn);
	}
	if (rc == -EINVAL && all->use.s->c.cpu_count)
		return error_set(err, rc,
			"cpus: this process may not use any of these "
			"processors");
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

uint64_t workers_cpu_ns(const struct workers *all)
{
	uint64_t ns = 0;

	ASSERT_TURN(all->use.turn);
	for (uint32_t i = 0; i < all->count; i++)
		if (all->table[i].started)
			ns += clock_cpu_of_ns(all->table[i].thread);
	return ns;
}

bool workers_stop(struct workers *all, uint64_t until_ns)
{
	bool ended;

	turn_lock(all->use.turn);
	while (all->running > 0)
		if (!turn_wait_until(all->use.turn, TURN_CLOSER, until_ns))
			break;
	ended = all->running == 0;
	turn_unlock(all->use.turn);
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
	for (uint32_t i = 0; all && i < all->count; i++)
		sampler_free(all->table[i].sampler);
	if (all)
		free(all->table);
	free(all);
}

uint32_t workers_count(const struct workers *all)
{
	return all->count;
}

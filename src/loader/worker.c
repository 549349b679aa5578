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
#include "loader/loader_impl.h"

/* -- Servings -------------------------------------------------------------- */

static struct serving *take_ready(struct refrain_loader *l)
{
	if (!l->ready)
		return NULL;
	for (uint64_t n = l->step_first; n < l->step_end; n++) {
		struct step *st = step_of(l, n);
		struct serving *s;

		if (list_empty(&st->ready))
			continue;
		s = CONTAINER_OF(st->ready.next, struct serving, node);
		list_del(&s->node);
		l->ready--;
		return s;
	}
	return NULL;
}

/* Its place in the batch is filled. */
static void finish(struct refrain_loader *l, struct serving *s)
{
	struct step *st = s->step;
	struct entry *e = s->entry;

	s->state = SERVING_DONE;
	st->left--;
	entry_served(l, e, s->echo);
	entry_settle(l, e);
}

/* Memory that a decoder or augmenter has taken for good. */
static void charge_worker(struct worker *w)
{
	struct memory *m = &w->l->memory;
	uint64_t held = sampler_memory_bytes(w->sampler);

	if (held > w->charged)
		memory_charge_over(m, held - w->charged);
	else
		memory_uncharge(m, w->charged - held);
	w->l->workers_bytes += held - w->charged;
	w->charged = held;
}

static void work(struct worker *w, struct serving *s)
{
	struct refrain_loader *l = w->l;
	struct entry *e = s->entry;
	enum entry_state state = e->state;
	enum refrain_stage_name stage = state == ENTRY_ENCODED
		? REFRAIN_STAGE_DECODE
		: REFRAIN_STAGE_AUGMENT;
	uint64_t now_ns = l->meter.ticked_ns;
	bool made;

	if (state != ENTRY_ENCODED && state != ENTRY_KEPT &&
		state != ENTRY_FAILED) {
		s->state = SERVING_WAITS; /* another worker was faster */
		list_add_tail(&e->waiting, &s->node);
		return;
	}
	s->state = SERVING_WORKS;
	l->meter.out.stages[stage].wait_ns += now_ns - s->since_ns;
	s->since_ns = now_ns;
	if (state == ENTRY_ENCODED)
		entry_state(l, e, ENTRY_WORKING);
	l->working++;
	w->busy = true;
	made = serving_make(w, s, state);
	l->working--;
	w->busy = false;
	charge_worker(w);
	if (made)
		finish(l, s);
}

/* -- The thread ------------------------------------------------------------ */

static void be_nice(const struct refrain_loader *l)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	/* What is not allowed is not done: it only makes things slower. */
	if (l->s.c.nice)
		(void)setpriority(PRIO_PROCESS, (id_t)tid,
			getpriority(PRIO_PROCESS, (id_t)tid) + l->s.c.nice);
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct refrain_loader *l = w->l;

	be_nice(l);
	turn_lock(&l->turn);
	while (!l->closing) {
		struct serving *s;

		if (l->alone) {
			turn_wait(&l->turn, TURN_WORKERS);
			continue;
		}
		if (planner_wants(l)) {
			planner_run(l);
			continue;
		}
		s = take_ready(l);
		if (s)
			work(w, s);
		else
			turn_wait(&l->turn, TURN_WORKERS);
	}
	l->running--;
	turn_mark(&l->turn, TURN_CLOSER);
	turn_unlock(&l->turn);
	return NULL;
}

/* -- Life ------------------------------------------------------------------ */

int workers_init(struct refrain_loader *l, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < l->s.c.cpu_count; i++)
		CPU_SET(l->s.c.cpus[i], &l->cpus);
	l->threads = l->s.c.threads;
	l->workers = calloc(l->threads, sizeof(*l->workers));
	if (!l->workers)
		return error_set(err, -ENOMEM, "no memory for the workers");
	for (uint32_t i = 0; rc == 0 && i < l->threads; i++) {
		struct worker *w = &l->workers[i];

		w->l = l;
		rc = sampler_new(&w->sampler, &l->s);
		if (rc == 0)
			charge_worker(w);
	}
	return rc < 0 ? error_set(err, rc, "cannot make a worker: %m") : 0;
}

/* -EINVAL if the process may use none of the processors. */
static int start_thread(struct refrain_loader *l, struct worker *w)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	if (l->s.c.cpu_count)
		rc = pthread_attr_setaffinity_np(
			&attr, sizeof(l->cpus), &l->cpus);
	if (!rc)
		rc = pthread_create(&w->thread, &attr, worker_thread, w);
	(void)pthread_attr_destroy(&attr); /* cannot fail on Linux */
	return -rc;
}

/* Signals are for the threads of the program. */
int workers_start(struct refrain_loader *l, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < l->threads; i++) {
		struct worker *w = &l->workers[i];

		turn_lock(&l->turn);
		l->running++;
		turn_unlock(&l->turn);
		rc = start_thread(l, w);
		w->started = rc == 0;
		if (rc == 0)
			continue;
		turn_lock(&l->turn);
		l->running--;
		turn_unlock(&l->turn);
	}
	if (rc == -EINVAL && l->s.c.cpu_count)
		return error_set(err, rc,
			"cpus: this process may use none of these processors");
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

uint64_t workers_cpu_ns(const struct refrain_loader *l)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < l->threads; i++)
		if (l->workers[i].started)
			ns += clock_cpu_of_ns(l->workers[i].thread);
	return ns;
}

bool workers_stop(struct refrain_loader *l, uint64_t until_ns)
{
	bool ended;

	turn_lock(&l->turn);
	while (l->running > 0)
		if (!turn_wait_until(&l->turn, TURN_CLOSER, until_ns))
			break;
	ended = l->running == 0;
	turn_unlock(&l->turn);
	for (uint32_t i = 0; l->workers && i < l->threads; i++) {
		if (!l->workers[i].started)
			continue;
		if (ended)
			pthread_join(l->workers[i].thread, NULL);
		else
			pthread_detach(l->workers[i].thread);
	}
	return ended;
}

void workers_release(struct refrain_loader *l)
{
	for (uint32_t i = 0; l->workers && i < l->threads; i++) {
		struct worker *w = &l->workers[i];

		sampler_free(w->sampler);
		memory_put(&l->memory, w->scratch);
	}
	free(l->workers);
}

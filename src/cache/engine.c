/* SPDX-License-Identifier: MIT */
/*
 * The engine of the cache. Code that changes something under the lock enters
 * with engine_enter() and leaves with engine_run(). That starts the requests
 * that can be started now, and does the jobs that must not run under the lock:
 * callbacks, and hand-overs to publishers and to sources. Each job may make
 * room for more requests. cache.c has the table of these jobs. Any thread.
 */
#include "cache/cache_impl.h"

#include "base/cond.h"

/* None of these can fail on Linux. */
void engine_init(struct cache *c, const struct cache_jobs *jobs)
{
	c->engine.jobs = jobs;
	list_init(&c->engine.planned);
	(void)pthread_mutex_init(&c->engine.lock, NULL);
	cond_init(&c->engine.idle_cond);
}

void engine_release(struct cache *c)
{
	(void)pthread_cond_destroy(&c->engine.idle_cond); /* nobody is left */
	(void)pthread_mutex_destroy(&c->engine.lock);
}

void engine_lock(struct cache *c)
{
	pthread_mutex_lock(&c->engine.lock);
}

void engine_unlock(struct cache *c)
{
	pthread_mutex_unlock(&c->engine.lock);
}

void engine_enter(struct cache *c, struct after *a)
{
	for (int i = 0; i < AFTER_KINDS; i++)
		list_init(&a->list[i]);
	engine_lock(c);
}

/* The first job, by the order of its kind, or NULL. */
static struct list *first_job(
	struct cache *c, struct after *a, enum after_kind *kind)
{
	for (int i = 0; i < AFTER_KINDS; i++) {
		struct list *head =
			i == AFTER_PLANNED ? &c->engine.planned : &a->list[i];

		if (list_empty(head))
			continue;
		*kind = (enum after_kind)i;
		return list_next(head);
	}
	return NULL;
}

/* The job may be gone afterwards. */
static void do_job(struct cache *c, struct list *job, enum after_kind kind)
{
	struct fill *f;

	list_del(job);
	engine_unlock(c);
	f = c->engine.jobs->run[kind](c, job);
	engine_lock(c);
	if (f)
		c->engine.jobs->unref(c, f);
	if (kind == AFTER_START && --c->engine.nstarting == 0 &&
		c->engine.stopping)
		engine_wake(c);
}

void engine_run(struct cache *c, struct after *a)
{
	enum after_kind kind;
	struct list *job;

	ASSERT_INSIDE(c);
	for (;;) {
		/* Each answer may give memory back, for others to start. */
		c->engine.jobs->dispatch(c, a);
		job = first_job(c, a, &kind);
		if (!job)
			break;
		do_job(c, job, kind);
	}
	engine_unlock(c);
}

void engine_add_planned(struct cache *c, struct list *link)
{
	ASSERT_INSIDE(c);
	list_add_tail(&c->engine.planned, link);
}

void engine_add_start(struct cache *c, struct after *a, struct list *link)
{
	ASSERT_INSIDE(c);
	c->engine.nstarting++;
	list_add_tail(&a->list[AFTER_START], link);
}

bool engine_is_starting(const struct cache *c)
{
	ASSERT_INSIDE(c);
	return c->engine.nstarting > 0;
}

void engine_stop(struct cache *c)
{
	ASSERT_INSIDE(c);
	c->engine.stopping = true;
}

bool engine_is_stopping(const struct cache *c)
{
	ASSERT_INSIDE(c);
	return c->engine.stopping;
}

void engine_wait(struct cache *c)
{
	ASSERT_INSIDE(c);
	pthread_cond_wait(&c->engine.idle_cond, &c->engine.lock);
}

bool engine_wait_until(struct cache *c, uint64_t until_ns)
{
	ASSERT_INSIDE(c);
	return cond_wait_until(&c->engine.idle_cond, &c->engine.lock, until_ns);
}

void engine_wake(struct cache *c)
{
	ASSERT_INSIDE(c);
	pthread_cond_broadcast(&c->engine.idle_cond);
}

/* SPDX-License-Identifier: MIT */
/*
 * The jobs of the cache. Code that changes state under the lock enters with
 * jobs_enter() and leaves with jobs_run(). jobs_run() starts the requests that
 * can be started now. Then it does the jobs that must not run with the lock
 * held: callbacks, and hand-overs to publishers and to providers. Each job may
 * free memory for more requests. call_job() names the function of each job. Any
 * thread.
 */
#include "mount/cache/cache_impl.h"

#include "common/base/cond.h"
#include "common/base/feature.h"
#include "common/base/lock.h"

/* None of these can fail on Linux. */
void jobs_init(struct cache *c)
{
	list_init(&c->jobs.planned);
	c->jobs.at_once = feature_enabled("at_once");
	lock_init(&c->jobs.lock, RANK_CACHE);
	cond_init(&c->jobs.idle_cond);
}

void jobs_release(struct cache *c)
{
	/* No thread waits any more */
	(void)pthread_cond_destroy(&c->jobs.idle_cond);
	(void)pthread_mutex_destroy(&c->jobs.lock);
}

void jobs_lock(struct cache *c)
{
	pthread_mutex_lock(&c->jobs.lock);
}

void jobs_unlock(struct cache *c)
{
	pthread_mutex_unlock(&c->jobs.lock);
}

void jobs_enter(struct cache *c, struct after *a)
{
	for (int i = 0; i < AFTER_KINDS; i++)
		list_init(&a->list[i]);
	a->reads_now = a->writes_now = false;
	jobs_lock(c);
}

void jobs_enter_serving(struct cache *c, struct after *a)
{
	jobs_enter(c, a);
	a->reads_now = a->writes_now = c->jobs.at_once;
}

/* Returns the first job in the order of the kinds, or NULL. */
static struct list *first_job(
	struct cache *c, struct after *a, enum after_kind *kind)
{
	for (int i = 0; i < AFTER_KINDS; i++) {
		struct list *head =
			i == AFTER_PLANNED ? &c->jobs.planned : &a->list[i];

		if (list_empty(head))
			continue;
		*kind = (enum after_kind)i;
		return list_next(head);
	}
	return NULL;
}

/* Do one job, without the lock. If this returns a fill, the job had a reference
 * to the fill, which must be dropped. */
static struct fill *call_job(struct cache *c, struct after *a, struct list *job,
	enum after_kind kind)
{
	switch (kind) {
	case AFTER_START:
		return dispatch_run(c, job, a);
	case AFTER_ABANDON:
		return abandon_run(c, job);
	case AFTER_READ:
		return read_run(c, job);
	case AFTER_WARM:
		return warm_run(c, job);
	case AFTER_STALE:
		return stale_run(c, job);
	case AFTER_PUSH:
		return push_run(c, job);
	case AFTER_PUBLISH:
		return publish_run(c, job, a);
	case AFTER_PLANNED:
		return planned_run(c, job);
	case AFTER_KINDS:
		break;
	}
	return NULL;
}

/* Do one job. After this call the job may have been freed. */
static void do_job(struct cache *c, struct after *a, struct list *job,
	enum after_kind kind)
{
	struct fill *f;

	list_del(job);
	jobs_unlock(c);
	f = call_job(c, a, job, kind);
	jobs_lock(c);
	if (f)
		fill_unref(c, f);
	if (kind == AFTER_START && --c->jobs.nstarting == 0 && c->jobs.stopping)
		jobs_wake(c);
}

void jobs_run(struct cache *c, struct after *a)
{
	enum after_kind kind;
	struct list *job;

	ASSERT_INSIDE(c);
	for (;;) {
		/* Each job may free memory for other requests. */
		dispatch_all(c, a);
		job = first_job(c, a, &kind);
		if (!job)
			break;
		do_job(c, a, job, kind);
	}
	jobs_unlock(c);
}

void jobs_add_planned(struct cache *c, struct list *link)
{
	ASSERT_INSIDE(c);
	list_add_tail(&c->jobs.planned, link);
}

void jobs_add_start(struct cache *c, struct after *a, struct list *link)
{
	ASSERT_INSIDE(c);
	c->jobs.nstarting++;
	list_add_tail(&a->list[AFTER_START], link);
}

bool jobs_is_starting(const struct cache *c)
{
	ASSERT_INSIDE(c);
	return c->jobs.nstarting > 0;
}

void jobs_stop(struct cache *c)
{
	ASSERT_INSIDE(c);
	c->jobs.stopping = true;
}

bool jobs_is_stopping(const struct cache *c)
{
	ASSERT_INSIDE(c);
	return c->jobs.stopping;
}

void jobs_wait(struct cache *c)
{
	ASSERT_INSIDE(c);
	pthread_cond_wait(&c->jobs.idle_cond, &c->jobs.lock);
}

bool jobs_wait_until(struct cache *c, uint64_t until_ns)
{
	ASSERT_INSIDE(c);
	return cond_wait_until(&c->jobs.idle_cond, &c->jobs.lock, until_ns);
}

void jobs_wake(struct cache *c)
{
	ASSERT_INSIDE(c);
	pthread_cond_broadcast(&c->jobs.idle_cond);
}

/* SPDX-License-Identifier: MIT */
/*
 * Turns under the lock of a loader; see turn.h. Called by every thread of the
 * loader.
 */
#include "loader/core/turn.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/cond.h"
#include "common/base/lock.h"

int turn_init(struct turn *t, const struct turn_ops *ops, void *arg)
{
	*t = (struct turn){.ops = ops, .arg = arg};
	lock_init(&t->lock, RANK_TURN);
	for (unsigned i = 0; i < TURN_WHO; i++)
		cond_init(&t->who[i]);
	return ready_open(&t->ready);
}

void turn_release(struct turn *t)
{
	ready_close(&t->ready);
	for (unsigned i = 0; i < TURN_WHO; i++)
		pthread_cond_destroy(&t->who[i]);
	pthread_mutex_destroy(&t->lock);
}

int turn_fd(const struct turn *t)
{
	return ready_fd(&t->ready);
}

/* -- Wake-ups -------------------------------------------------------------- */

/* The wake-ups that end() has marked. They are made without the lock. */
struct wakes {
	uint32_t workers;
	bool all_workers, ready_changed, who[TURN_WHO];
	void *chosen;
};

static void turn_end(struct turn *t, struct wakes *w)
{
	ASSERT_TURN(t);
	w->chosen = t->ops->end(t->arg);
	w->workers = t->workers;
	w->all_workers = t->workers >= t->idle;
	t->workers = 0;
	w->ready_changed = t->ready_changed;
	t->ready_changed = false;
	memcpy(w->who, t->marked, sizeof(w->who));
	memset(t->marked, 0, sizeof(t->marked));
}

static bool wakes_any(const struct wakes *w)
{
	bool any = w->chosen || w->workers || w->ready_changed;

	for (unsigned i = 0; i < TURN_WHO; i++)
		any = any || w->who[i];
	return any;
}

static void wake_workers(struct turn *t, const struct wakes *w)
{
	pthread_cond_t *workers = &t->who[TURN_WORKERS];

	if (w->workers && w->all_workers)
		pthread_cond_broadcast(workers);
	for (uint32_t i = 0; !w->all_workers && i < w->workers; i++)
		pthread_cond_signal(workers);
}

static void after_turn(struct turn *t, const struct wakes *w)
{
	if (w->ready_changed)
		ready_write(&t->ready);
	wake_workers(t, w);
	for (unsigned i = 0; i < TURN_WHO; i++)
		if (w->who[i])
			pthread_cond_broadcast(&t->who[i]);
	if (w->chosen)
		t->ops->start(t->arg, w->chosen);
}

/* -- Turns ----------------------------------------------------------------- */

void turn_lock(struct turn *t)
{
	pthread_mutex_lock(&t->lock);
	t->ops->begin(t->arg);
}

void turn_unlock(struct turn *t)
{
	struct wakes w;

	turn_end(t, &w);
	pthread_mutex_unlock(&t->lock);
	after_turn(t, &w);
}

/*
 * End the turn of a thread that is about to sleep. Returns true if the thread
 * may sleep. If other threads must be woken or work must be started, this
 * releases the lock to do so and returns false: then the thread must check its
 * condition again.
 */
static bool may_sleep(struct turn *t)
{
	struct wakes w;

	turn_end(t, &w);
	if (!wakes_any(&w))
		return true;
	pthread_mutex_unlock(&t->lock);
	after_turn(t, &w);
	pthread_mutex_lock(&t->lock);
	return false;
}

static bool sleep_until(struct turn *t, enum turn_who who, uint64_t until_ns)
{
	if (until_ns != UINT64_MAX)
		return cond_wait_until(&t->who[who], &t->lock, until_ns);
	pthread_cond_wait(&t->who[who], &t->lock);
	return true;
}

/* Sleep until there is work. When a worker wakes up, `woken` decreases by one,
 * even if another worker was meant: the signals name no thread. */
static void wait_for_work(struct turn *t)
{
	ASSERT_TURN(t);
	t->ops->begin(t->arg);
	t->idle++;
	if (may_sleep(t))
		(void)sleep_until(t, TURN_WORKERS, UINT64_MAX);
	t->ops->begin(t->arg);
	t->idle--;
	t->woken -= t->woken > 0;
}

bool turn_wait_until(struct turn *t, enum turn_who who, uint64_t until_ns)
{
	bool early = true;
	uint32_t round = t->rounds[who];

	ASSERT_TURN(t);
	t->asleep[who]++;
	if (may_sleep(t))
		early = sleep_until(t, who, until_ns);
	if (t->rounds[who] == round)
		t->asleep[who]--;
	t->ops->begin(t->arg);
	return early;
}

void turn_wait(struct turn *t, enum turn_who who)
{
	ASSERT_TURN(t);
	if (who == TURN_WORKERS)
		wait_for_work(t);
	else
		(void)turn_wait_until(t, who, UINT64_MAX);
}

/* -- Marks ----------------------------------------------------------------- */

void turn_mark(struct turn *t, enum turn_who who)
{
	ASSERT_TURN(t);
	if (!t->asleep[who])
		return;
	t->marked[who] = true;
	t->asleep[who] = 0;
	t->rounds[who]++;
}

void turn_wake_closer(struct turn *t)
{
	ASSERT_TURN(t);
	pthread_cond_broadcast(&t->who[TURN_CLOSER]);
}

void turn_mark_workers(struct turn *t, uint64_t n)
{
	uint32_t most = n < t->idle ? (uint32_t)n : t->idle;

	ASSERT_TURN(t);
	if (most <= t->woken)
		return;
	t->workers += most - t->woken;
	t->woken = most;
}

uint32_t turn_idle(const struct turn *t)
{
	ASSERT_TURN(t);
	return t->idle;
}

void turn_ready(struct turn *t, bool ready)
{
	ASSERT_TURN(t);
	t->ready_changed |= ready_set(&t->ready, ready);
}

/* SPDX-License-Identifier: MIT */
/* A loop: an epoll, an eventfd with which other threads end its wait, and a
 * list of posts. */
#include "common/base/loop.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"

#define EVENTS_MAX 64
#define DATA_WAKE UINT64_MAX

int loop_init(struct loop *l)
{
	*l = (struct loop){.wake_fd = -1};
	lock_init(&l->lock, RANK_LOOP);
	list_init(&l->posts);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return -errno;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0)
		return -errno;
	return loop_watch(l, l->wake_fd, EPOLLIN, DATA_WAKE);
}

void loop_release(struct loop *l)
{
	if (l->epoll_fd >= 0)
		/* cannot lose data: nothing is written to it */
		(void)close(l->epoll_fd);
	if (l->wake_fd >= 0)
		/* cannot lose data: nothing is written to it */
		(void)close(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
}

/* -- The thread ------------------------------------------------------------ */

int loop_watch(struct loop *l, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = {.events = events, .data.u64 = data};

	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno
								     : 0;
}

void loop_unwatch(struct loop *l, int fd)
{
	/* This fails if the descriptor was closed, because epoll has dropped it
	 * then. */
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Returns the time until `until_ns`, rounded up, so that the time has passed
 * after the wait. */
static int wait_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns(), ms;

	if (until_ns == LOOP_NEVER)
		return -1;
	if (until_ns <= now_ns)
		return 0;
	ms = (until_ns - now_ns - 1) / NS_PER_MS + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

void loop_wait(struct loop *l, uint64_t until_ns, loop_ready_fn *ready)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(l->epoll_fd, events, EVENTS_MAX, wait_ms(until_ns));
	eventfd_t wakes;

	for (int i = 0; i < n; i++)
		if (events[i].data.u64 == DATA_WAKE)
			/* resets the counter to 0 */
			(void)eventfd_read(l->wake_fd, &wakes);
		else
			ready(l, events[i].data.u64, events[i].events);
}

bool loop_run_posts(struct loop *l)
{
	bool stopping;

	pthread_mutex_lock(&l->lock);
	while (!list_empty(&l->posts)) {
		struct post *p = LIST_FIRST(&l->posts, struct post, node);

		list_del(&p->node);
		atomic_fetch_sub_explicit(&l->posted, 1, memory_order_relaxed);
		p->queued = false;
		pthread_mutex_unlock(&l->lock);
		OBJECT(post, p)->run(p);
		pthread_mutex_lock(&l->lock);
	}
	l->awake = false;
	stopping = l->stopping;
	pthread_mutex_unlock(&l->lock);
	return !stopping;
}

void loop_unpost(struct loop *l, struct post *p)
{
	LOCK_SCOPE(&l->lock);

	if (p->queued) {
		list_del(&p->node);
		atomic_fetch_sub_explicit(&l->posted, 1, memory_order_relaxed);
	}
	p->queued = false;
}

/* -- Any thread ------------------------------------------------------------ */

/* Queue a post; the caller holds the lock. Returns true if the post was not
 * queued yet. */
static bool queue_post(struct loop *l, struct post *p)
{
	if (p->queued)
		return false;
	p->queued = true;
	list_add_tail(&l->posts, &p->node);
	atomic_fetch_add_explicit(&l->posted, 1, memory_order_relaxed);
	return true;
}

bool loop_put(struct loop *l, struct post *p)
{
	bool wake;

	LOCK_SCOPE(&l->lock);
	wake = queue_post(l, p) && !l->awake;
	l->awake |= wake;
	return wake;
}

void loop_wake(struct loop *l)
{
	/* This can only fail if the counter is full, and then the loop wakes up
	 * anyway. */
	(void)eventfd_write(l->wake_fd, 1);
}

void loop_post(struct loop *l, struct post *p)
{
	if (loop_put(l, p))
		loop_wake(l);
}

void loop_post_quietly(struct loop *l, struct post *p)
{
	LOCK_SCOPE(&l->lock);
	/* no wake-up, so the result does not matter */
	(void)queue_post(l, p);
}

unsigned loop_posted(const struct loop *l)
{
	return atomic_load_explicit(&l->posted, memory_order_relaxed);
}

void loop_stop(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	l->stopping = true;
	pthread_mutex_unlock(&l->lock);
	loop_wake(l);
}

/* SPDX-License-Identifier: MIT */
/*
 * Lets a thread wait in one place for descriptors that become ready, posts of
 * other threads, and a time. The owner provides the thread, and decides what it
 * does between two waits:
 *
 *	while (loop_run_posts(l)) {
 *		...
 *		loop_wait(l, until_ns, ready);
 *	}
 *
 * Only the loop's thread calls these functions, except those marked "any
 * thread".
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/base/magic.h"

/* A function that will be called on the thread of a loop. Embedded in a struct
 * of its owner. */
struct post {
	uint32_t magic;
	/* All members are private. */
	void (*run)(struct post *p); /* set once */
	struct list node;	     /* guarded by the lock of the loop */
	bool queued;		     /* guarded by the lock of the loop */
};

/* Embedded in a struct of its owner. All members are private. */
struct loop {
	int epoll_fd, wake_fd; /* set once */

	pthread_mutex_t lock; /* guards the next three members */
	struct list posts;
	bool awake; /* the thread is awake and will look at the posts */
	bool stopping;
	_Atomic unsigned posted; /* length of `posts`; relaxed */
};

/* Called when a descriptor has one of the events for which it is watched, such
 * as EPOLLIN. `data` is the argument of loop_watch(). */
typedef void loop_ready_fn(struct loop *l, uint64_t data, uint32_t events);

/* As `until_ns`: wait without a time limit. */
#define LOOP_NEVER UINT64_MAX

/* Returns 0 or -errno. Call loop_release() in either case. */
int loop_init(struct loop *l);

/* Release a loop whose thread has ended or was never started. Descriptors that
 * were watched stay open; their owners close them. */
void loop_release(struct loop *l);

/* -- The thread ------------------------------------------------------------ */

/* Watch a descriptor for these events from now on; they replace those of an
 * earlier call. Closing the descriptor ends the watch, unless another process
 * has a copy of the descriptor. `data` may have any value but UINT64_MAX. After
 * an -errno nothing has changed. */
int loop_watch(struct loop *l, int fd, uint32_t events, uint64_t data);
void loop_unwatch(struct loop *l, int fd);

/* Wait for an event of a descriptor, for loop_wake(), or until the time. Calls
 * `ready` for each descriptor that has events. */
void loop_wait(struct loop *l, uint64_t until_ns, loop_ready_fn *ready);

/* Run the posts, oldest first. Returns false after loop_stop(). */
bool loop_run_posts(struct loop *l);

/* Remove a post from the queue, so that it does not run. */
void loop_unpost(struct loop *l, struct post *p);

/* -- Any thread ------------------------------------------------------------ */

/* Initialise a post. run() is called on the loop's thread, and may free the
 * post. */
static inline void post_init(struct post *p, void (*run)(struct post *p))
{
	*p = (struct post){.magic = MAGIC_post, .run = run};
}

/* Run the post soon. If it is posted again before it runs, it still runs once.
 */
void loop_post(struct loop *l, struct post *p);

/* loop_post() in two steps, for callers that hold locks: if loop_put() returns
 * true, the caller must call loop_wake() when it has released the locks. */
bool loop_put(struct loop *l, struct post *p);
void loop_wake(struct loop *l);

/* Run the post when the loop next wakes up, without waking it. */
void loop_post_quietly(struct loop *l, struct post *p);

/* Returns the number of posts that wait. */
unsigned loop_posted(const struct loop *l);

/* Have loop_run_posts() return false from now on. */
void loop_stop(struct loop *l);

#endif

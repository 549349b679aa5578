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

/* A call on the thread of a loop. Embedded in its owner. */
struct post {
	uint32_t magic;
	/* All private. */
	void (*run)(struct post *p); /* set once */
	struct list node;	     /* lock of the loop */
	bool queued;		     /* lock of the loop */
};

/* Embedded in its owner. All private. */
struct loop {
	int epoll_fd, wake_fd; /* set once */

	pthread_mutex_t lock; /* guards the next three */
	struct list posts;
	bool awake; /* the loop will look at its posts by itself */
	bool stopping;
	_Atomic unsigned posted; /* length of `posts`; relaxed */
};

/* Called when a descriptor has one of the events that it is watched for:
 * EPOLLIN and so on. `data` is the argument of loop_watch(). */
typedef void loop_ready_fn(struct loop *l, uint64_t data, uint32_t events);

/* The value of `until_ns` that sets no time. */
#define LOOP_NEVER UINT64_MAX

/* Returns 0 or -errno. Call loop_release() in either case. */
int loop_init(struct loop *l);

/* Release a loop whose thread has ended or was never started. Watched
 * descriptors stay open; their owners close them. */
void loop_release(struct loop *l);

/* -- The thread ------------------------------------------------------------ */

/*
 * Watch a descriptor for these events from now on; they replace those of an
 * earlier call. Closing the descriptor ends the watch, unless another process
 * has a copy of it. `data` may have any value but UINT64_MAX. On -errno nothing
 * has changed.
 */
int loop_watch(struct loop *l, int fd, uint32_t events, uint64_t data);
void loop_unwatch(struct loop *l, int fd);

/* Wait for a descriptor, a wake-up or the time, and call `ready` for each
 * descriptor that has events. */
void loop_wait(struct loop *l, uint64_t until_ns, loop_ready_fn *ready);

/* Run the posts, oldest first. Returns false after loop_stop(). */
bool loop_run_posts(struct loop *l);

/* Take the post back; it will not run. */
void loop_unpost(struct loop *l, struct post *p);

/* -- Any thread ------------------------------------------------------------ */

/* run() is called on the loop's thread, and may free the post. */
static inline void post_init(struct post *p, void (*run)(struct post *p))
{
	*p = (struct post){.magic = MAGIC_post, .run = run};
}

/* Run the post soon, once, even if it was posted several times meanwhile. */
void loop_post(struct loop *l, struct post *p);

/* loop_post() in two steps, for callers that hold locks: if loop_put() returns
 * true, loop_wake() must follow once the locks are released. */
bool loop_put(struct loop *l, struct post *p);
void loop_wake(struct loop *l);

/* Run the post after the next wait, without ending that wait. */
void loop_post_quietly(struct loop *l, struct post *p);

/* The number of posts that wait. */
unsigned loop_posted(const struct loop *l);

/* Let loop_run_posts() return false. */
void loop_stop(struct loop *l);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Joins a share, and finds the next host when a host has ended. A thread waits
 * for the end of the host, so that it is noticed even while the trainer is
 * busy. The job that gets the lock of the share becomes the next host, and
 * waits for the other members. Before that, the thread reads the remaining
 * messages of the old host, to learn the next step. The thread also opens and
 * closes the engine of a job that continues alone.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "loader/share/share_member_impl.h"

#define RETRY_MS 5
#define ANSWER_MS 100 /* interval of checks whether the thread has to stop */
#define LEAVE_NS (900 * NS_PER_MS * TIME_LIMIT_FACTOR)
#define MEET_NS (2 * NS_PER_S) /* how long a job searches for the next host */

/* -- One attempt to join --------------------------------------------------- */

/* Become the host. Returns 0, -errno, or -EAGAIN if another process is becoming
 * the host. */
static int host_here(struct shared *sh, const struct share_hello *hello,
	const struct share_view *view, struct error *err)
{
	struct share_host_config config = {
		.place = sh->place,
		.jobs = hello->jobs,
		.own = hello->id,
	};
	struct shared_host *host;
	int rc;

	/* an earlier host of this process has ended, but was not stopped yet */
	if (sh->host)
		return -EAGAIN;
	if (hello->wish == SHARE_WISH_AGAIN) {
		config.before = view;
		config.begun = view->begun;
		config.generation = sh->link.generation + 1;
		if (view->wanted > config.jobs)
			config.jobs = view->wanted;
	}
	rc = shared_host_start(&host, &sh->run, &config, err);
	if (rc < 0)
		return rc;
	LOCK_SCOPE(&sh->lock);
	sh->host = host;
	return 0;
}

static bool is_to_stop(struct shared *sh, int timeout_ms)
{
	struct pollfd p = {.fd = sh->follower.stop_fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) > 0;
}

/* Send HELLO and wait for the answer. The answer takes long if the host is
 * opening its dataset. */
static int say_hello(struct shared *sh, struct share_link *link,
	const struct share_hello *hello, struct share_welcome *welcome,
	uint64_t until_ns, struct error *err)
{
	int rc = share_link_join(link, hello, ANSWER_MS, welcome, err);

	while (rc == -EAGAIN && clock_now_ns() < until_ns && !is_to_stop(sh, 0))
		rc = share_link_await(link, hello, ANSWER_MS, welcome, err);
	return rc;
}

/*
 * Connect to the host, or become the host. Returns 0, -EAGAIN if the caller
 * must try again, or -errno if the job was refused. This needs no lock, because
 * no other thread changes the data that it uses.
 */
static int join_once(struct shared *sh, struct share_link *link,
	const struct share_hello *hello, const struct share_view *view,
	struct share_welcome *welcome, uint64_t until_ns, struct error *err)
{
	int rc = share_link_open(link, sh->place, err);

	/* Whether there is a host is not known. Only the holder of the share's
	 * lock is the host, so try to take that lock. */
	if (rc == -ENOENT || rc == -ECONNREFUSED || rc == -EAGAIN) {
		/* This job makes its own batches; another one should become the
		 * host */
		if (hello->wish == SHARE_WISH_ALONE)
			return -EAGAIN;
		rc = host_here(sh, hello, view, err);
		return rc == 0 ? -EAGAIN : rc;
	}
	if (rc == -ECONNRESET)
		return -EAGAIN;
	if (rc < 0)
		return rc == -EPERM
			? rc
			: error_set(err, rc, "cannot reach share '%s': %m",
				  hello->name);
	rc = say_hello(sh, link, hello, welcome, until_ns, err);
	if (rc == 0)
		return 0;
	share_link_close(link);
	/* If the host has ended in the meantime, the caller must try again. */
	return rc == -EPIPE || rc == -ECONNRESET ? -EAGAIN : rc;
}

static bool may_retry(struct shared *sh, uint64_t until_ns, struct error *err)
{
	if (clock_now_ns() < until_ns)
		return !is_to_stop(sh, RETRY_MS);
	if (!err->msg[0])
		(void)error_set(err, -ETIMEDOUT,
			"share '%s': another process holds its lock but does "
			"not answer",
			sh->run.hello.name);
	return false;
}

static int join_until(struct shared *sh, struct share_link *link,
	const struct share_hello *hello, const struct share_view *view,
	struct share_welcome *welcome, uint64_t until_ns, struct error *err)
{
	int rc;

	while ((rc = join_once(sh, link, hello, view, welcome, until_ns,
			err)) == -EAGAIN)
		if (!may_retry(sh, until_ns, err))
			return -ETIMEDOUT;
	return rc;
}

/* Start to use a new link. Called with the lock held, or before other threads
 * know the loader. A job that is ALONE remains so until the host has batches
 * for it. */
static void follow_link(struct shared *sh, const struct share_link *link,
	const struct share_welcome *welcome)
{
	sh->link.to = *link;
	sh->link.state = LINK_UP;
	sh->link.stale = false;
	sh->link.word = welcome->place;
	sh->link.generation = welcome->generation;
	sh->link.asked = sh->link.told_alone = 0;
	if (sh->state != SHARED_ALONE) {
		sh->link.expect = welcome->step;
		sh->state = SHARED_FOLLOWING;
	}
	shared_poll(sh, link->fd, true);
	shared_poll(sh, link->pidfd, true);
}

/* -- Continuing alone ------------------------------------------------------ */

/* Continue the stream with this job's own engine. */
static void go_alone(struct shared *sh)
{
	struct batch_source *engine = NULL;
	struct error err = {""};
	uint64_t step;
	int rc;

	pthread_mutex_lock(&sh->lock);
	/* Begin after the batches that were announced; they are still used. */
	step = sh->link.expect * sh->run.slices;
	if (step < sh->lending.next)
		step = sh->lending.next;
	pthread_mutex_unlock(&sh->lock);
	rc = shared_run_open(&sh->run, true, step, NULL, &engine, &err);
	pthread_mutex_lock(&sh->lock);
	if (rc < 0) {
		sh->failed = rc;
		sh->message = err;
	} else {
		sh->alone.engine = engine;
		sh->alone.from = step;
		sh->state = SHARED_ALONE;
		shared_poll(sh, batch_fd(engine), true);
	}
	shared_unlock(sh);
}

/* Close the engine of a job that follows a host again. The user may still hold
 * batches of it. */
static void close_retired(struct shared *sh)
{
	struct refrain_stats stats;
	struct batch_source *engine;
	int rc;

	pthread_mutex_lock(&sh->lock);
	engine = sh->alone.retired;
	sh->alone.retired = NULL;
	pthread_mutex_unlock(&sh->lock);
	if (!engine)
		return;
	engine->ops->stats(engine, &stats);
	rc = batch_close(engine);
	LOCK_SCOPE(&sh->lock);
	shared_add_work(&sh->count.work, &stats);
	/* If a thread of the engine hangs, it may still use the dataset, so the
	 * loader stays */
	sh->left = sh->left || rc != 0;
}

static enum shared_state state_of_job(struct shared *sh)
{
	LOCK_SCOPE(&sh->lock);
	return sh->state;
}

/* -- After the host has ended ---------------------------------------------- */

/* Read the last messages of the old host, which determine the next step.
 * Returns false if the stream does not continue. */
static bool read_the_rest(struct shared *sh)
{
	bool goes_on;

	pthread_mutex_lock(&sh->lock);
	shared_lose(sh);
	/* temporary, so that shared_receive() reads the messages */
	sh->link.state = LINK_UP;
	(void)shared_receive(sh, true);
	sh->link.state = LINK_LOST;
	if (sh->state == SHARED_FOLLOWING)
		sh->state = SHARED_LOST;
	if (shared_was_parted(sh))
		shared_part(sh);
	shared_hang_up(sh);
	if (sh->lending.area) /* batches in use have their own references */
		shared_area_unref(sh->lending.area);
	sh->lending.area = NULL;
	goes_on = !sh->failed && sh->course == SHARED_GOES_ON;
	shared_unlock(sh);
	return goes_on;
}

/* Stop the host in this process, if it has ended after a failure. */
static void stop_own_host(struct shared *sh)
{
	struct shared_host *host;

	pthread_mutex_lock(&sh->lock);
	host = sh->host;
	sh->host = NULL;
	pthread_mutex_unlock(&sh->lock);
	if (!host || shared_host_stop(host) == 0)
		return;
	LOCK_SCOPE(&sh->lock);
	sh->left = true;
}

/* Find the next host for a job that is ALONE. Such a job does not become the
 * host. */
static void meet_again(struct shared *sh)
{
	struct share_hello hello = sh->run.hello;
	struct share_link link = {-1, -1, 0};
	struct share_welcome welcome;
	struct error err = {""};

	hello.wish = SHARE_WISH_ALONE;
	pthread_mutex_lock(&sh->lock);
	hello.step = (sh->lending.next + sh->run.slices - 1) / sh->run.slices;
	pthread_mutex_unlock(&sh->lock);
	if (join_until(sh, &link, &hello, &sh->link.before, &welcome,
		    clock_now_ns() + MEET_NS, &err) < 0)
		return;
	pthread_mutex_lock(&sh->lock);
	follow_link(sh, &link, &welcome);
	shared_unlock(sh);
}

static void find_next_host(struct shared *sh)
{
	struct share_hello hello = sh->run.hello;
	struct share_link link = {-1, -1, 0};
	struct share_welcome welcome;
	struct error err = {""};
	int rc;

	hello.wish = SHARE_WISH_AGAIN;
	/* A job that was alone may be ahead of the shared stream. */
	pthread_mutex_lock(&sh->lock);
	hello.step = sh->lending.next / sh->run.slices;
	if (hello.step < sh->link.expect)
		hello.step = sh->link.expect;
	pthread_mutex_unlock(&sh->lock);
	rc = join_until(sh, &link, &hello, &sh->link.before, &welcome,
		UINT64_MAX, &err);
	if (rc < 0 && is_to_stop(sh, 0))
		return;
	pthread_mutex_lock(&sh->lock);
	if (rc == 0) {
		follow_link(sh, &link, &welcome);
	} else {
		/* All batches that the old host has announced were read, so
		 * continue alone */
		sh->state = SHARED_PARTED;
		sh->count.parted++;
	}
	shared_unlock(sh);
}

/* Has the host ended, while its link is not closed yet? */
static bool is_lost(struct shared *sh)
{
	LOCK_SCOPE(&sh->lock);
	return sh->link.state == LINK_LOST;
}

/* Wait until the host has ended or another thread has written to lost_fd.
 * Returns false if the thread must stop. */
static bool wait_for_loss(struct shared *sh, bool *lost)
{
	struct pollfd p[4] = {{.fd = sh->follower.stop_fd, .events = POLLIN},
		{.fd = sh->follower.lost_fd, .events = POLLIN},
		{.fd = sh->link.to.fd, .events = POLLRDHUP},
		{.fd = sh->link.to.pidfd, .events = POLLIN}};
	uint64_t n;

	while (poll(p, 4, -1) < 0)
		;
	/* This fails if no thread has written to it */
	(void)!read(sh->follower.lost_fd, &n, sizeof(n));
	*lost = p[2].revents || p[3].revents || is_lost(sh);
	return !p[0].revents;
}

static void *follow_host(void *arg)
{
	struct shared *sh = OBJECT(shared, arg);
	bool lost;

	while (wait_for_loss(sh, &lost)) {
		lost = lost && read_the_rest(sh);
		close_retired(sh);
		if (lost)
			stop_own_host(sh);
		if (lost && state_of_job(sh) == SHARED_LOST)
			find_next_host(sh);
		if (state_of_job(sh) == SHARED_PARTED)
			go_alone(sh);
		if (lost && state_of_job(sh) == SHARED_ALONE &&
			sh->run.hello.grace_s)
			meet_again(sh);
	}
	LOCK_SCOPE(&sh->lock);
	sh->follower.state = FOLLOWER_ENDED;
	pthread_cond_signal(&sh->follower.ended);
	return NULL;
}

/* -- Start and end --------------------------------------------------------- */

/* Start the thread with all signals blocked, so that the program's own threads
 * handle them. */
static int start_follower(struct shared *sh, struct error *err)
{
	sigset_t all, before;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail */
	sh->follower.state = FOLLOWER_RUNS;
	rc = -pthread_create(&sh->follower.thread, NULL, follow_host, sh);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc < 0)
		sh->follower.state = FOLLOWER_NONE;
	return rc < 0 ? error_set(err, rc, "cannot start a thread: %m") : 0;
}

static uint64_t open_until_ns(const struct shared *sh)
{
	int32_t ms = sh->run.s.c.open_timeout_ms;

	return ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)ms * NS_PER_MS;
}

/* Have all changes come? Returns 1 if so, and also if the host is gone, because
 * then the thread will find the next host. */
static int look_for_changes(struct shared *sh, uint32_t changes,
	uint64_t until_ns, struct error *err)
{
	ASSERT_HELD(&sh->lock);
	if (!shared_receive(sh, false))
		return 1;
	if (sh->failed)
		return error_set(err, sh->failed, "%s", sh->message.msg);
	if (sh->run.changes < changes && clock_now_ns() >= until_ns)
		return error_set(err, -ETIMEDOUT,
			"the host of share '%s' (process %d) did not "
			"send its changes of the echo factor",
			sh->run.hello.name, (int)sh->link.to.host_pid);
	return sh->run.changes >= changes;
}

/* Wait until the host has sent all changes of the echo factor. Without them, a
 * job that joins late could not compute its stream. */
static int await_changes(struct shared *sh, uint32_t changes, uint64_t until_ns,
	struct error *err)
{
	struct pollfd p = {.fd = sh->link.to.fd, .events = POLLIN};
	int rc = sh->run.changes >= changes;

	while (rc == 0) {
		/* The result does not matter, because the loop checks again */
		(void)poll(&p, 1, ANSWER_MS);
		pthread_mutex_lock(&sh->lock);
		rc = look_for_changes(sh, changes, until_ns, err);
		shared_unlock(sh);
	}
	return rc < 0 ? rc : 0;
}

int shared_join(struct shared *sh, struct error *err)
{
	const struct share_view none = {0};
	struct share_link link = {-1, -1, 0};
	struct share_welcome welcome;
	uint64_t step = sh->run.begin, until_ns = open_until_ns(sh);
	int rc = join_until(
		sh, &link, &sh->run.hello, &none, &welcome, until_ns, err);

	if (rc == 0 && welcome.step != sh->run.hello.step)
		step = welcome.step * sh->run.slices;
	pthread_mutex_lock(&sh->lock);
	if (rc == 0)
		rc = shared_seek(sh, step, err);
	pthread_mutex_unlock(&sh->lock);
	if (rc == 0) {
		pthread_mutex_lock(&sh->lock);
		follow_link(sh, &link, &welcome);
		shared_unlock(sh);
		if (welcome.begun)
			rc = await_changes(sh, welcome.changes, until_ns, err);
	} else {
		share_link_close(&link);
	}
	if (rc == 0)
		rc = start_follower(sh, err);
	if (rc < 0 && sh->host)
		sh->left = shared_host_stop(sh->host) != 0;
	return rc;
}

/* Join the thread. Returns false if the thread has not ended in time. */
static bool join_thread(struct shared *sh, uint64_t until_ns)
{
	struct shared_follower *f = &sh->follower;
	bool ended, runs;

	pthread_mutex_lock(&sh->lock);
	while (f->state == FOLLOWER_RUNS &&
		cond_wait_until(&f->ended, &sh->lock, until_ns))
		;
	runs = f->state == FOLLOWER_RUNS;
	ended = f->state == FOLLOWER_ENDED;
	if (ended)
		f->state = FOLLOWER_NONE;
	pthread_mutex_unlock(&sh->lock);
	if (ended)
		/* Does not wait, because the thread has ended */
		(void)pthread_join(f->thread, NULL);
	return !runs;
}

/* Wait for running calls, which return at once because the loader is closing.
 * Returns false if a call has not returned in time. */
static bool wait_for_callers(struct shared *sh, uint64_t until_ns)
{
	struct timespec nap = {.tv_nsec = (long)NS_PER_MS};

	while (atomic_load_explicit(&sh->callers, memory_order_acquire) > 0) {
		if (clock_now_ns() >= until_ns)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return true;
}

int shared_leave(struct shared *sh)
{
	uint64_t one = 1, until_ns = clock_now_ns() + LEAVE_NS;

	/* cannot fail: its counter is not full */
	(void)!write(sh->follower.stop_fd, &one, sizeof(one));
	if (!join_thread(sh, until_ns))
		return 1;
	return wait_for_callers(sh, until_ns) ? 0 : 1;
}

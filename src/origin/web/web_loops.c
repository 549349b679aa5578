/* SPDX-License-Identifier: MIT */
/*
 * Starts and stops the loops, and chooses a loop for a request.
 */
#include "origin/web/web_loops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "origin/web/web_loop_impl.h"

#define CONNECT_DEFAULT_MS 3000u
#define STALL_DEFAULT_S 5u
/* Posts that wait for a loop, from which on another one takes its share. */
#define BACKLOG 8u

/* -- Posts ----------------------------------------------------------------- */

struct loop *loops_pick(struct loops *e)
{
	unsigned turn =
		atomic_fetch_add_explicit(&e->turn, 1, memory_order_relaxed);

	return &e->loops[turn % e->nloops];
}

/* Does it start what it is given at once? */
static bool keeps_up(const struct loops *e, const struct loop *l)
{
	unsigned posted =
		atomic_load_explicit(&l->posted, memory_order_relaxed);
	unsigned held = atomic_load_explicit(&l->held, memory_order_relaxed);

	return posted < BACKLOG && posted + held < loops_depth(e) / e->nloops;
}

struct loop *loops_pick_running(struct loops *e)
{
	for (unsigned i = 0; i < e->nloops; i++)
		if (keeps_up(e, &e->loops[i]))
			return &e->loops[i];
	return loops_pick(e);
}

struct sign_key *loop_sign_key(struct loop *l)
{
	return &l->key;
}

void loop_wake(struct loop *l)
{
	uint64_t one = 1;

	/* A counter that is full wakes the loop as well. */
	(void)!write(l->event_fd, &one, sizeof(one));
}

bool loop_put(struct loop *l, struct post *p)
{
	bool wake = false;

	pthread_mutex_lock(&l->lock);
	if (!p->queued) {
		p->queued = true;
		list_add_tail(&l->posts, &p->node);
		atomic_fetch_add_explicit(&l->posted, 1, memory_order_relaxed);
		wake = !l->awake;
		l->awake = true;
	}
	pthread_mutex_unlock(&l->lock);
	return wake;
}

void loop_post(struct loop *l, struct post *p)
{
	if (loop_put(l, p))
		loop_wake(l);
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

/* -- Life ------------------------------------------------------------------ */

static int loop_open(struct loop *l)
{
	struct epoll_event event = {.events = EPOLLIN};

	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->epoll_fd < 0 || l->event_fd < 0)
		return -errno;
	event.data.fd = l->event_fd;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->event_fd, &event) < 0)
		return -errno;
	return 0;
}

static void loop_init(struct loop *l, struct loops *e)
{
	l->e = e;
	l->epoll_fd = l->event_fd = -1;
	lock_init(&l->lock, RANK_LOOP);
	list_init(&l->posts);
	list_init(&l->queue);
	list_init(&l->paused);
	list_init(&l->sent);
	list_init(&l->arriving);
	l->slow_ns = 3 * SLOW_LEAST_NS; /* until there are times */
}

static int loop_begin(struct loop *l)
{
	int rc = loop_open(l);

	if (rc < 0)
		return rc;
	rc = pthread_create(&l->thread, NULL, loop_main, l);
	l->started = rc == 0;
	return -rc;
}

static void loop_end(struct loop *l)
{
	if (l->started) {
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		pthread_mutex_unlock(&l->lock);
		loop_wake(l);
		pthread_join(l->thread, NULL);
	}
	if (l->epoll_fd >= 0)
		(void)close(l->epoll_fd); /* nothing is written to it */
	if (l->event_fd >= 0)
		(void)close(l->event_fd); /* as above */
	sign_key_wipe(&l->key);
	bytes_release(&l->text.url);
	bytes_release(&l->text.headers);
	pthread_mutex_destroy(&l->lock);
}

void loops_free(struct loops *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->nloops; i++)
		loop_end(&e->loops[i]);
	pthread_mutex_destroy(&e->throttle_lock);
	free(e->ca_file);
	free(e);
}

/* Two parse long listings at the same time. */
static unsigned default_loops(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus < 2)
		return 1;
	return cpus < 16 ? 2 : LOOPS_MAX;
}

/* libcurl would look for each request. */
static bool has_proxies(void)
{
	static const char *const names[] = {"http_proxy", "https_proxy",
		"HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			return true;
	return false;
}

static void fill_config(struct loops *e, const struct loops_config *config)
{
	e->config = *config;
	e->proxies = has_proxies();
	if (!e->config.depth)
		e->config.depth = LOOPS_DEPTH_DEFAULT;
	if (!e->config.connect_ms)
		e->config.connect_ms = CONNECT_DEFAULT_MS;
	if (!e->config.stall_s)
		e->config.stall_s = STALL_DEFAULT_S;
	if (!e->config.loops)
		e->config.loops = default_loops();
	if (e->config.loops > LOOPS_MAX)
		e->config.loops = LOOPS_MAX;
	/* Each takes one request at least. */
	if (e->config.loops > e->config.depth)
		e->config.loops = e->config.depth;
	atomic_store(&e->depth, e->config.depth);
	throttle_init(&e->throttle, e->config.depth);
	lock_init(&e->throttle_lock, RANK_THROTTLE);
}

int loops_new(struct loops **out, const struct loops_config *config,
	struct error *err)
{
	struct loops *e;
	int rc = 0;

	/* Not thread-safe, but mounts are made by one thread. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return error_set(err, -EIO, "cannot start libcurl");
	e = calloc(1, sizeof(*e));
	if (!e)
		return error_set(err, -ENOMEM, "%m");
	fill_config(e, config);
	if (config->ca_file) {
		e->ca_file = strdup(config->ca_file);
		rc = e->ca_file ? 0 : -ENOMEM;
	}
	while (rc == 0 && e->nloops < e->config.loops) {
		struct loop *l = &e->loops[e->nloops++];

		loop_init(l, e);
		rc = loop_begin(l);
	}
	if (rc < 0) {
		loops_free(e);
		return error_set(err, rc, "cannot start network threads: %m");
	}
	*out = e;
	return 0;
}

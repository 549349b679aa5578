/* SPDX-License-Identifier: MIT */
/*
 * Starts and stops the loops, and chooses a loop for a request.
 */
#include "origin/web/web_loops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "origin/web/web_loop_impl.h"

#define CONNECT_DEFAULT_MS 3000u
#define STALL_DEFAULT_S 5u
/* If this many posts wait for a loop, short requests go to another loop. */
#define BACKLOG 8u

/* -- The choice of a loop -------------------------------------------------- */

struct loop *loops_pick(struct loops *e)
{
	unsigned turn =
		atomic_fetch_add_explicit(&e->turn, 1, memory_order_relaxed);

	return &e->loops[turn % e->nloops].loop;
}

/* Would the loop send a new request at once? */
static bool keeps_up(const struct loops *e, const struct web_loop *l)
{
	unsigned posted = loop_posted(&l->loop);
	unsigned held = atomic_load_explicit(&l->held, memory_order_relaxed);

	return posted < BACKLOG && posted + held < loops_depth(e) / e->nloops;
}

struct loop *loops_pick_running(struct loops *e)
{
	for (unsigned i = 0; i < e->nloops; i++)
		if (keeps_up(e, &e->loops[i]))
			return &e->loops[i].loop;
	return loops_pick(e);
}

struct sign_key *web_loop_sign_key(struct loop *l)
{
	return &web_loop_of(l)->key;
}

/* -- Life ------------------------------------------------------------------ */

static int web_loop_begin(struct web_loop *l, struct loops *e)
{
	int rc = loop_init(&l->loop);

	MAGIC_BEGIN(l, web_loop);
	l->e = e;
	list_init(&l->queue);
	list_init(&l->paused);
	list_init(&l->sent);
	list_init(&l->arriving);
	/* this value is used until enough times were measured */
	l->slow_ns = 3 * SLOW_LEAST_NS;
	if (rc < 0)
		return rc;
	rc = pthread_create(&l->thread, NULL, web_loop_main, l);
	l->started = rc == 0;
	return -rc;
}

static void web_loop_end(struct web_loop *l)
{
	if (l->started) {
		loop_stop(&l->loop);
		pthread_join(l->thread, NULL);
	}
	loop_release(&l->loop);
	sign_key_wipe(&l->key);
	bytes_release(&l->text.url);
	bytes_release(&l->text.headers);
	MAGIC_END(l);
}

void loops_free(struct loops *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->nloops; i++)
		web_loop_end(&e->loops[i]);
	pthread_mutex_destroy(&e->throttle_lock);
	free(e->ca_file);
	free(e);
}

/* Returns the default number of loops. Two loops can parse long listings at the
 * same time. */
static unsigned default_loops(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus < 2)
		return 1;
	return cpus < 16 ? 2 : LOOPS_MAX;
}

/* Does the environment name proxies? This is checked once, because libcurl
 * would check it for each request. */
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
	/* Use at most `depth` loops, because each loop sends at least one
	 * request. */
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

	/* This call is not thread-safe, but only one thread creates mounts. */
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
	while (rc == 0 && e->nloops < e->config.loops)
		rc = web_loop_begin(&e->loops[e->nloops++], e);
	if (rc < 0) {
		loops_free(e);
		return error_set(err, rc, "cannot start network threads: %m");
	}
	*out = e;
	return 0;
}

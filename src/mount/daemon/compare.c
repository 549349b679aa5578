/* SPDX-License-Identifier: MIT */
/*
 * Compares units that came from peers with the bytes of the origin. The thread
 * of the peers starts a comparison; threads of the origin continue it.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

struct compare {
	uint32_t magic;
	struct origin *origin;	   /* set once */
	struct counters *counters; /* set once */
	pthread_mutex_t lock;	   /* guards all members below */
	pthread_cond_t cond; /* signalled when the last comparison has ended */
	struct list running; /* list of struct comparison */
	bool stopping;
};

/* A comparison. The request to the origin owns it until the callback done(). */
struct comparison {
	struct origin_read r;
	struct list link;
	struct compare *all;	   /* set once */
	struct peers_check *check; /* set once */
	struct hash_stream *hash;
	size_t got;
};

static struct comparison *comparison_of(struct origin_read *r)
{
	return CONTAINER_OF(r, struct comparison, r);
}

static void comparison_data(
	struct origin_read *r, uint64_t off, const void *bytes, size_t len)
{
	struct comparison *x = comparison_of(r);

	(void)off; /* bytes arrive in order, without gaps */
	hash_stream_add(x->hash, bytes, len);
	x->got += len;
	COUNT_ADD(x->all->counters, origin_bytes, len);
}

static int comparison_result(const struct comparison *x, int status)
{
	if (status < 0)
		return status;
	if (x->got != x->check->len)
		return -EIO;
	return hash_stream_value(x->hash) == x->check->hash;
}

static void comparison_free(struct comparison *x)
{
	if (x->r.file)
		origin_file_free(x->all->origin, x->r.file);
	hash_stream_free(x->hash);
	free(x);
}

static void comparison_done(struct origin_request *q, int status)
{
	struct comparison *x = comparison_of(origin_read_of(q));
	struct compare *all = x->all;

	if (status == 0)
		COUNT(all->counters, origin_reads);
	x->check->result = comparison_result(x, status);
	peers_checked(x->check);
	pthread_mutex_lock(&all->lock);
	list_del(&x->link);
	comparison_free(x);
	if (list_empty(&all->running))
		pthread_cond_broadcast(&all->cond);
	pthread_mutex_unlock(&all->lock);
}

static struct comparison *comparison_new(
	struct compare *all, struct peers_check *check)
{
	struct comparison *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->all = all;
	x->check = check;
	x->hash = hash_stream_new();
	x->r.file = origin_file_new(all->origin, check->path);
	x->r.want = check->version;
	x->r.off = check->off;
	x->r.len = check->len;
	x->r.data = comparison_data;
	x->r.req.done = comparison_done;
	if (x->hash && x->r.file)
		return x;
	comparison_free(x);
	return NULL;
}

void compare_unit(void *arg, struct peers_check *check)
{
	struct compare *all = OBJECT(compare, arg);
	struct comparison *x = comparison_new(all, check);
	bool stopping;

	if (!x) {
		check->result = -ENOMEM;
		peers_checked(check);
		return;
	}
	pthread_mutex_lock(&all->lock);
	stopping = all->stopping;
	list_add_tail(&all->running, &x->link);
	pthread_mutex_unlock(&all->lock);
	if (stopping)
		comparison_done(&x->r.req, -ECANCELED);
	else
		origin_read(all->origin, &x->r);
}

int compare_new(
	struct compare **out, struct origin *origin, struct counters *counters)
{
	struct compare *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	MAGIC_BEGIN(all, compare);
	all->origin = origin;
	all->counters = counters;
	lock_init(&all->lock, RANK_COMPARE);
	cond_init(&all->cond);
	list_init(&all->running);
	*out = all;
	return 0;
}

void compare_stop(struct compare *all)
{
	pthread_mutex_lock(&all->lock);
	all->stopping = true;
	LIST_FOREACH(l, &all->running)
		origin_read_abandon(all->origin,
			&CONTAINER_OF(l, struct comparison, link)->r);
	while (!list_empty(&all->running))
		pthread_cond_wait(&all->cond, &all->lock);
	pthread_mutex_unlock(&all->lock);
}

void compare_free(struct compare *all)
{
	if (!all)
		return;
	(void)pthread_cond_destroy(&all->cond); /* no thread waits any more */
	(void)pthread_mutex_destroy(&all->lock);
	MAGIC_END(all);
	free(all);
}

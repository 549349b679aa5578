/* SPDX-License-Identifier: MIT */
/* Queues reads that wait for memory in which to gather their bytes. A thread
 * that returns memory begins the next reads. Only one thread at a time begins
 * reads, in a loop: a read may be answered at once and return its memory, and
 * without the loop this would begin the next read recursively. */
#include "mount/fs/fs_gather_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

struct gather_wait {
	struct list node;
	struct parked p;
	struct asked ask;
};

void gathers_init(struct gathers *g, uint64_t max_bytes, asked_fn *read)
{
	g->max = max_bytes;
	g->read = read;
	atomic_init(&g->used, 0);
	atomic_init(&g->waits, 0);
	lock_init(&g->lock, RANK_GATHERS);
	list_init(&g->waiting);
	g->beginning = false;
}

void gathers_release(struct gathers *g)
{
	(void)pthread_mutex_destroy(&g->lock);
}

/* Take memory. If no other read has memory, the read gets it in any case;
 * otherwise a read larger than the limit would wait for ever. */
static bool gathers_charge(struct gathers *g, uint64_t bytes)
{
	uint64_t used = atomic_fetch_add(&g->used, bytes);

	if (used == 0 || used + bytes <= g->max)
		return true;
	(void)atomic_fetch_sub(&g->used, bytes);
	return false;
}

bool gathers_take(struct gathers *g, uint64_t bytes)
{
	return atomic_load(&g->waits) == 0 && gathers_charge(g, bytes);
}

/* Take the next read from the queue, with memory for it, or return NULL. */
static struct gather_wait *next_wait(struct gathers *g)
{
	LOCK_SCOPE(&g->lock);
	struct gather_wait *w = NULL;

	if (!list_empty(&g->waiting))
		w = LIST_FIRST(&g->waiting, struct gather_wait, node);
	if (!w || !gathers_charge(g, w->ask.len)) {
		g->beginning = false;
		return NULL;
	}
	list_del(&w->node);
	(void)atomic_fetch_sub(&g->waits, 1);
	return w;
}

static void begin_wait(struct gathers *g, struct gather_wait *wait)
{
	struct asked ask = wait->ask;
	fuse_req_t req = wait->p.req;
	bool ours = parked_claim(&wait->p);

	free(wait);
	ask.has_room = ours;
	if (ours)
		g->read(&ask, req);
	else
		(void)atomic_fetch_sub(&g->used, ask.len);
}

static bool may_begin(struct gathers *g)
{
	LOCK_SCOPE(&g->lock);

	if (g->beginning || list_empty(&g->waiting))
		return false;
	g->beginning = true;
	return true;
}

static void begin_waiting(struct gathers *g)
{
	struct gather_wait *wait;

	if (!may_begin(g))
		return;
	while ((wait = next_wait(g)))
		begin_wait(g, wait);
}

void gathers_wait(const struct asked *ask, fuse_req_t req)
{
	struct gathers *g = &ask->fs->gathers;
	struct gather_wait *wait = malloc(sizeof(*wait));

	if (!wait) {
		/* An error of the reply cannot be reported */
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	wait->ask = *ask;
	parked_init(&wait->p, req);
	pthread_mutex_lock(&g->lock);
	list_add_tail(&g->waiting, &wait->node);
	(void)atomic_fetch_add(&g->waits, 1);
	pthread_mutex_unlock(&g->lock);
	/* Memory may have been returned in the meantime. */
	begin_waiting(g);
}

void gathers_give(struct gathers *g, uint64_t bytes)
{
	(void)atomic_fetch_sub(&g->used, bytes);
	if (atomic_load(&g->waits) > 0)
		begin_waiting(g);
}

unsigned fs_reads_waiting(const struct fs *fs)
{
	return atomic_load(&fs->gathers.waits);
}

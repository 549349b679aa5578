/* SPDX-License-Identifier: MIT */
/*
 * Creates and stops the tree. Also has its own thread, which handles the
 * changes that tree_event.c has queued, one after another.
 */
#include "mount/names/tree_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

#define PATIENCE_NS (2 * NS_PER_S)

static void act(struct tree *t, const struct tree_event *e)
{
	const struct tree_config *c = &t->config;

	if (e->change == MANIFEST_ATTR) {
		c->changed(c->arg, e->id);
		/* If the mtime of a directory has changed, its names may have
		 * changed, too, so list it again. */
		if (e->old.attr.kind == KIND_DIR && e->old.listed)
			(void)tree_list_since(t, e->id, e->turn, NULL);
		return;
	}
	if (e->change == MANIFEST_FOLLOWED) {
		c->ceased(c->arg, &e->old);
		c->changed(c->arg, e->id);
		return;
	}
	if (e->change != MANIFEST_ADDED && e->old.attr.kind == KIND_FILE)
		c->ceased(c->arg, &e->old);
	c->renamed(c->arg, e->dir, e->name);
}

static void *tree_main(void *arg)
{
	struct tree *t = OBJECT(tree, arg);

	pthread_mutex_lock(&t->lock);
	for (;;) {
		struct tree_event *e;

		while ((list_empty(&t->events) || t->paused) && !t->ending)
			pthread_cond_wait(&t->event_cond, &t->lock);
		if (list_empty(&t->events))
			break;
		e = LIST_FIRST(&t->events, struct tree_event, link);
		list_del(&e->link);
		t->acting = true;
		pthread_mutex_unlock(&t->lock);
		act(t, e);
		free(e);
		pthread_mutex_lock(&t->lock);
		t->acting = false;
		pthread_cond_broadcast(&t->done_cond);
		if (!list_empty(&t->events))
			continue;
		pthread_mutex_unlock(&t->lock);
		tree_note_told(t);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

void tree_note_told(struct tree *t)
{
	uint64_t at;

	pthread_mutex_lock(&t->lock);
	at = list_empty(&t->events) && !t->acting ? t->reported : 0;
	pthread_mutex_unlock(&t->lock);
	/* Do not hold tree.lock here, because the manifest's lock must be taken
	 * before tree.lock. */
	if (at > 0)
		manifest_told(t->config.manifest, at);
}

void tree_flush(struct tree *t)
{
	LOCK_SCOPE(&t->lock);
	while (!list_empty(&t->events) || t->acting)
		pthread_cond_wait(&t->done_cond, &t->lock);
}

void tree_waits(struct tree *t, struct tree_waits *out)
{
	LOCK_SCOPE(&t->lock);
	*out = (struct tree_waits){
		list_count(&t->asks), list_count(&t->listings)};
}

uint64_t tree_changes(struct tree *t)
{
	LOCK_SCOPE(&t->lock);
	return t->changed + t->added + t->removed;
}

uint64_t tree_generation(struct tree *t)
{
	LOCK_SCOPE(&t->lock);
	return t->changed + t->added + t->removed + t->attrs + t->listed;
}

int tree_new(
	struct tree **out, const struct tree_config *config, struct error *err)
{
	struct tree *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return error_set(err, -ENOMEM, "cannot make the tree: %m");
	MAGIC_BEGIN(t, tree);
	t->config = *config;
	t->paused = config->paused;
	if (t->config.patience_ns == 0)
		t->config.patience_ns = PATIENCE_NS;
	lock_init(&t->lock, RANK_TREE);
	(void)pthread_cond_init(&t->event_cond, NULL);
	cond_init(&t->done_cond);
	list_init(&t->events);
	list_init(&t->listings);
	list_init(&t->asks);
	rc = pthread_create(&t->thread, NULL, tree_main, t);
	if (rc != 0) {
		free(t);
		return error_set(err, -rc, "cannot start a thread: %m");
	}
	*out = t;
	return 0;
}

void tree_resume(struct tree *t)
{
	LOCK_SCOPE(&t->lock);
	t->paused = false;
	pthread_cond_broadcast(&t->event_cond);
}

bool tree_stop(struct tree *t)
{
	bool quiet;

	pthread_mutex_lock(&t->lock);
	t->stopping = true;
	quiet = cond_wait_zero(&t->done_cond, &t->lock, &t->requests);
	/* Set this only after the requests have ended, because until then
	 * tree_flush() needs the thread. */
	t->ending = true;
	pthread_cond_broadcast(&t->event_cond);
	pthread_mutex_unlock(&t->lock);
	/* First end the look-ups: the kernel locks a directory during a
	 * look-up, and the tree's thread may be waiting for that lock. */
	tree_fail_asks(t);
	tree_fail_listings(t);
	pthread_join(t->thread, NULL);
	return quiet;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	/* No thread waits any more */
	(void)pthread_cond_destroy(&t->event_cond);
	(void)pthread_cond_destroy(&t->done_cond);
	(void)pthread_mutex_destroy(&t->lock);
	MAGIC_END(t);
	free(t);
}

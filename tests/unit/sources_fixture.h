/* SPDX-License-Identifier: MIT */
/*
 * For tests of the sources of fills: up to two stand-ins that answer on the
 * test's command, and a cache over them.
 */
#ifndef SOURCES_FIXTURE_H
#define SOURCES_FIXTURE_H

#include "cache_fixture.h"
#include "suite.h"

#define UNIT ((size_t)64 << 10)
#define SIZE ((uint64_t)4 * UNIT) /* of a file */
#define EVER (UINT64_MAX / 4)

/* A source by hand. */
struct stand_in {
	struct source s;
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t cond;
	struct source_read *read[256];
	struct source_push *push[256];
	size_t nreads, npushes, abandoned, ended;
};

static struct stand_in stand_in[2];

static inline void stand_in_read(struct source *s, struct source_read *r)
{
	struct stand_in *t = (struct stand_in *)s;

	pthread_mutex_lock(&t->lock);
	t->read[t->nreads++] = r;
	pthread_cond_broadcast(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

static inline void *give_up_main(void *arg)
{
	struct source_read *r = arg;

	r->done(r, -ECANCELED);
	return NULL;
}

static inline void stand_in_abandon(struct source *s, struct source_read *r)
{
	struct stand_in *t = (struct stand_in *)s;
	pthread_t thread;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->nreads; i++)
		if (t->read[i] == r) {
			t->read[i] = t->read[--t->nreads];
			t->abandoned++;
			ck_assert_int_eq(
				pthread_create(&thread, NULL, give_up_main, r),
				0);
			(void)pthread_detach(thread);
			break;
		}
	pthread_mutex_unlock(&t->lock);
}

static inline void stand_in_push(struct source *s, struct source_push *p)
{
	struct stand_in *t = (struct stand_in *)s;

	pthread_mutex_lock(&t->lock);
	t->push[t->npushes++] = p;
	pthread_cond_broadcast(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

static inline void stand_in_ended(
	struct source *s, const struct source_item *item)
{
	struct stand_in *t = (struct stand_in *)s;

	(void)item;
	__atomic_add_fetch(&t->ended, 1, __ATOMIC_RELEASE);
}

static const struct source_ops deaf_ops = {
	.read = stand_in_read,
	.abandon = stand_in_abandon,
};

static const struct source_ops stand_in_ops = {
	.read = stand_in_read,
	.abandon = stand_in_abandon,
	.push = stand_in_push,
	.ended = stand_in_ended,
};

/* The oldest read that it has in hand. */
static inline struct source_read *asked(struct stand_in *t)
{
	struct source_read *r;

	pthread_mutex_lock(&t->lock);
	while (t->nreads == 0)
		pthread_cond_wait(&t->cond, &t->lock);
	r = t->read[0];
	memmove(&t->read[0], &t->read[1], --t->nreads * sizeof(t->read[0]));
	pthread_mutex_unlock(&t->lock);
	return r;
}

static inline struct source_push *pushed(struct stand_in *t)
{
	struct source_push *p;

	pthread_mutex_lock(&t->lock);
	while (t->npushes == 0)
		pthread_cond_wait(&t->cond, &t->lock);
	p = t->push[--t->npushes];
	pthread_mutex_unlock(&t->lock);
	return p;
}

static inline size_t in_hand(struct stand_in *t)
{
	size_t n;

	pthread_mutex_lock(&t->lock);
	n = t->nreads;
	pthread_mutex_unlock(&t->lock);
	return n;
}

/* Give the first `bytes` of what is asked for, then say `status`. */
static inline void give(struct source_read *r, size_t bytes, int status)
{
	uint8_t data[UNIT];

	ck_assert_uint_le(r->len, UNIT);
	for (size_t i = 0; i < bytes; i++)
		data[i] = byte_at(r->item.base + r->off + i);
	if (bytes)
		r->data(r, r->off, data, bytes);
	r->done(r, status);
}

static inline void give_all(struct source_read *r)
{
	give(r, r->len, 0);
}

/* -- The cache over them --------------------------------------------------- */

static struct rig g;
static size_t unit_bytes; /* of the first source */

static inline void start(unsigned sources, unsigned depth, uint64_t patience_ns)
{
	rig_nsources = sources;
	for (unsigned i = 0; i < sources; i++) {
		stand_in[i] = (struct stand_in){
			.s = {.ops = i ? &deaf_ops : &stand_in_ops,
				.traits = {.request_bytes = UNIT,
					.unit_bytes = i ? 0 : unit_bytes,
					.depth = depth,
					.patience_ns = patience_ns,
					.pending_bytes = SIZE}},
			.lock = PTHREAD_MUTEX_INITIALIZER,
			.cond = PTHREAD_COND_INITIALIZER};
		rig_source[i] = &stand_in[i].s;
	}
	rig_start(&g, "64M");
}

static inline struct cache_source_counts counts(unsigned source)
{
	struct cache_source_counts n;

	cache_source_counts(g.cache, source, &n);
	return n;
}

static inline void read_whole(struct probe *p, uint64_t cookie)
{
	probe_read(&g, p, file_item(&g, cookie, SIZE, 0), 0, SIZE);
}

static inline void finish(struct probe *p)
{
	probe_wait(p);
	ck_assert_int_eq(p->status, (int)SIZE);
	ck_assert(p->right);
}

/* The next read of the origin is of these bytes. */
static inline void origin_gives(uint64_t off, size_t len)
{
	struct origin_read *r = hand_take(&g.hand, 0);

	ck_assert_uint_eq(r->off, off);
	ck_assert_uint_eq(r->len, len);
	answer(r, 0);
}

static inline void take_push(void)
{
	struct source_push *p = pushed(&stand_in[0]);

	p->done(p, 0);
}

#endif

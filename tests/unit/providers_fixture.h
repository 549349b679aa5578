/* SPDX-License-Identifier: MIT */
/*
 * For tests of the providers of fills: up to two providers that answer when the
 * test says so, and a cache over them.
 */
#ifndef PROVIDERS_FIXTURE_H
#define PROVIDERS_FIXTURE_H

#include "cache_fixture.h"
#include "suite.h"

#define UNIT ((size_t)64 << 10)
#define SIZE ((uint64_t)4 * UNIT) /* size of a file */
#define EVER (UINT64_MAX / 4)

/* A provider that the test answers. */
struct stand_in {
	struct provider s;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t cond;
	struct provider_read *read[256];
	struct provider_push *push[256];
	size_t nreads, npushes, abandoned, ended;
};

static struct stand_in stand_in[2];

static inline void stand_in_read(struct provider *s, struct provider_read *r)
{
	struct stand_in *t = (struct stand_in *)s;

	pthread_mutex_lock(&t->lock);
	t->read[t->nreads++] = r;
	pthread_cond_broadcast(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

static inline void *give_up_main(void *arg)
{
	struct provider_read *r = arg;

	r->done(r, -ECANCELED);
	return NULL;
}

static inline void stand_in_abandon(struct provider *s, struct provider_read *r)
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

static inline void stand_in_push(struct provider *s, struct provider_push *p)
{
	struct stand_in *t = (struct stand_in *)s;

	pthread_mutex_lock(&t->lock);
	t->push[t->npushes++] = p;
	pthread_cond_broadcast(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

static inline void stand_in_ended(
	struct provider *s, const struct provider_item *item)
{
	struct stand_in *t = (struct stand_in *)s;

	(void)item;
	__atomic_add_fetch(&t->ended, 1, __ATOMIC_RELEASE);
}

/* Count the abandoned read, but do not answer it: the test decides when. */
static inline void stubborn_abandon(struct provider *s, struct provider_read *r)
{
	struct stand_in *t = (struct stand_in *)s;

	(void)r;
	__atomic_add_fetch(&t->abandoned, 1, __ATOMIC_RELEASE);
}

static const struct provider_ops stubborn_ops = {
	.read = stand_in_read,
	.abandon = stubborn_abandon,
};

static const struct provider_ops deaf_ops = {
	.read = stand_in_read,
	.abandon = stand_in_abandon,
};

static const struct provider_ops stand_in_ops = {
	.read = stand_in_read,
	.abandon = stand_in_abandon,
	.push = stand_in_push,
	.ended = stand_in_ended,
};

/* Returns the oldest read that the provider has not answered. */
static inline struct provider_read *asked(struct stand_in *t)
{
	struct provider_read *r;

	pthread_mutex_lock(&t->lock);
	while (t->nreads == 0)
		pthread_cond_wait(&t->cond, &t->lock);
	r = t->read[0];
	memmove(&t->read[0], &t->read[1], --t->nreads * sizeof(t->read[0]));
	pthread_mutex_unlock(&t->lock);
	return r;
}

static inline struct provider_push *pushed(struct stand_in *t)
{
	struct provider_push *p;

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

/* Deliver the first `bytes` of the requested bytes, then answer `status`. */
static inline void give(struct provider_read *r, size_t bytes, int status)
{
	uint8_t data[UNIT];

	ck_assert_uint_le(r->len, UNIT);
	for (size_t i = 0; i < bytes; i++)
		data[i] = byte_at(r->item.base + r->off + i);
	if (bytes)
		r->data(r, r->off, data, bytes);
	r->done(r, status);
}

static inline void give_all(struct provider_read *r)
{
	give(r, r->len, 0);
}

/* -- The cache over them --------------------------------------------------- */

static struct rig g;
static size_t unit_bytes; /* unit of the first provider in bytes */

static inline void start(
	unsigned providers, unsigned depth, uint64_t patience_ns)
{
	rig_nproviders = providers;
	for (unsigned i = 0; i < providers; i++) {
		stand_in[i] = (struct stand_in){
			.s = {.ops = i ? &deaf_ops : &stand_in_ops,
				.traits = {.request_bytes = UNIT,
					.unit_bytes = i ? 0 : unit_bytes,
					.depth = depth,
					.patience_ns = patience_ns,
					.pending_bytes = SIZE}},
			.lock = PTHREAD_MUTEX_INITIALIZER,
			.cond = PTHREAD_COND_INITIALIZER};
		rig_provider[i] = &stand_in[i].s;
	}
	rig_start(&g, "64M");
}

static inline struct cache_provider_counts counts(unsigned provider)
{
	struct cache_provider_counts n;

	cache_provider_counts(g.cache, provider, &n);
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

/* Check that the next read of the origin is for these bytes, and answer that
 * read. */
static inline void origin_gives(uint64_t off, size_t len)
{
	struct origin_read *r = hand_take(&g.hand, 0);

	ck_assert_uint_eq(r->off, off);
	ck_assert_uint_eq(r->len, len);
	answer(r, 0);
}

static inline void take_push(void)
{
	struct provider_push *p = pushed(&stand_in[0]);

	p->done(p, 0);
}

#endif

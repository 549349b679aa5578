/* SPDX-License-Identifier: MIT */
/*
 * The cache's data about its providers other than the origin: requests in
 * flight, counts, and items to push. See fill_provider.c.
 */
#ifndef CACHE_FILL_PROVIDER_IMPL_H
#define CACHE_FILL_PROVIDER_IMPL_H

#include <stdbool.h>

#include "common/base/list.h"
#include "origin/provider.h"
#include "common/base/timer.h"
#include "mount/cache/cache.h"

struct after;
struct fetch;
struct fill;

/* Everything is guarded by cache.lock. */
struct cache_provider {
	struct provider *s;  /* set once */
	struct cache *cache; /* set once */
	/* Requests in flight: struct fetch, oldest first */
	struct list inflight;
	/* Requests that were given up and have not ended */
	struct list late;
	unsigned nasked; /* number of requests in `inflight` */
	uint64_t pushing_bytes;
	/* Fires when the oldest request has taken patience_ns */
	struct timer timer;
	struct cache_provider_counts counts;
};

/* Requests and pushes to all providers other than the origin. */
struct cache_asked {
	/* The providers, in the order in which they are asked. */
	struct cache_provider provider[PROVIDERS_MAX];
	/* Set once: chunks are fetched in multiples of this many pages */
	unsigned unit_pages;
	unsigned n; /* requests in flight, including those in `late` */
	unsigned npushing;
};

/* Called with the lock held and with the result of the push of one unit. For a
 * provider that does not keep items instead of the tiers, the status is always
 * 0. */
typedef void provider_offered_fn(
	struct cache *c, struct fill *f, int status, struct after *a);

/* A complete unit that is being pushed to a provider. Holds a reference to its
 * fill. */
struct push {
	struct provider_push p;
	struct cache_provider *to; /* set once */
	struct fill *f;		   /* set once */
	/* Set once: called with the result of the push */
	provider_offered_fn *offered;
	/* Set once: the provider may keep the item instead of the tiers */
	bool decides;
	struct list link; /* in a list of struct after */
};

void providers_init(struct cache *c);

/* The functions below assert the lock. */
/* May another request be sent to the provider? `surplus`: no reader waits for
 * it. */
bool provider_may_ask(struct cache *c, unsigned level, bool surplus);
size_t provider_request_bytes(struct cache *c, unsigned level);
/* Note that the request is in flight from now on. A job calls provider_read()
 * later to send it. */
void provider_ask(struct cache *c, struct fetch *x);
void provider_forget(struct cache *c, struct fetch *x);
void provider_count(struct cache *c, const struct fetch *x, int status);
/* Mark requests of the fill as urgent, because a reader waits for the fill
 * now. */
void providers_hurry(struct cache *c, const struct fill *f);
/* Pages that have arrived, and the function that gets the results of pushing
 * their units. */
struct provider_news {
	unsigned first, n;
	provider_offered_fn *offered;
};
/* Push the units that these pages have completed, if some of their bytes came
 * from the origin. */
void providers_push(struct cache *c, struct fill *f,
	const struct provider_news *news, struct after *a);
/* Tell the providers that no page of the fill is wanted or in flight any
 * more. */
void providers_ended(struct cache *c, const struct fill *f);
/* Give up all requests, including those to the origin. */
void providers_abandon(struct cache *c, struct after *a);
void providers_quiet(struct cache *c);
/* Returns the number of requests and pushes in flight, including requests to
 * the origin. */
unsigned providers_out(struct cache *c);
/* If nothing is in flight any more, wake the thread that stops the cache. */
void providers_tell_idle(struct cache *c);

/* Functions of jobs, and provider_read(): called without the lock. */
struct fill *push_run(struct cache *c, struct list *link);
struct fill *abandon_run(struct cache *c, struct list *link);
void provider_read(struct cache *c, struct fetch *x);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The cache's data about its providers besides the origin: requests in flight,
 * counts, and items to push. See fill_provider.c.
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
	struct provider *s;   /* set once */
	struct cache *cache;  /* set once */
	struct list inflight; /* of struct fetch, oldest first */
	struct list late;     /* requests that were given up */
	unsigned nasked;      /* on .inflight */
	uint64_t pushing_bytes;
	/* Fires when the oldest request has taken too long */
	struct timer timer;
	struct cache_provider_counts counts;
};

/* Requests and pushes to all providers. */
struct cache_asked {
	/* The providers, in the order in which they are asked. */
	struct cache_provider provider[PROVIDERS_MAX];
	/* Set once: chunks are fetched in multiples of this */
	unsigned unit_pages;
	unsigned n; /* requests and pushes in flight */
	unsigned npushing;
};

/* Called with the result of a push of one unit; with 0 if the provider does not
 * keep items instead of the tiers. The lock is held. */
typedef void provider_offered_fn(
	struct cache *c, struct fill *f, int status, struct after *a);

/* A complete unit on its way to a provider; holds a reference to its fill. */
struct push {
	struct provider_push p;
	struct cache_provider *to;    /* set once */
	struct fill *f;		      /* set once */
	provider_offered_fn *offered; /* set once: called with the result */
	bool decides; /* set once: the provider may keep it instead of tiers */
	struct list link; /* in an after's list */
};

void providers_init(struct cache *c);

/* The functions below assert the lock. */
/* `surplus`: no reader waits for it. */
bool provider_may_ask(struct cache *c, unsigned level, bool surplus);
size_t provider_request_bytes(struct cache *c, unsigned level);
/* Count the request as in flight from now on; see provider_read(). */
void provider_ask(struct cache *c, struct fetch *x);
void provider_forget(struct cache *c, struct fetch *x);
void provider_count(struct cache *c, const struct fetch *x, int status);
/* A reader now waits for the fill's requests to providers: mark them urgent. */
void providers_hurry(struct cache *c, const struct fill *f);
/* Pages that have arrived, and the function to call with the results for their
 * units. */
struct provider_news {
	unsigned first, n;
	provider_offered_fn *offered;
};
/* Offer the units that are complete with these pages, if some of their bytes
 * came from the origin. */
void providers_push(struct cache *c, struct fill *f,
	const struct provider_news *news, struct after *a);
/* Tell the providers that nothing more of the fill is in flight. */
void providers_ended(struct cache *c, const struct fill *f);
/* Give up all requests, including those to the origin. */
void providers_abandon(struct cache *c, struct after *a);
void providers_quiet(struct cache *c);
/* Requests and pushes in flight, including those to the origin. */
unsigned providers_out(struct cache *c);
/* If nothing is in flight any more, wake the thread that stops the cache. */
void providers_tell_idle(struct cache *c);

/* Needs no lock. */
struct fill *push_run(struct cache *c, struct list *link);
struct fill *abandon_run(struct cache *c, struct list *link);
void provider_read(struct cache *c, struct fetch *x);

#endif

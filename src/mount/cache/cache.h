/* SPDX-License-Identifier: MIT */
/*
 * The read-through cache. A read is answered from a tier, or waits for the
 * fetch of its item; however many readers ask for an item, it is fetched once.
 * No call blocks: a read that cannot be answered now is parked, and its
 * callback runs when the bytes have arrived.
 *
 * An item is a whole file up to the limit, or one chunk of a larger file. All
 * functions may be called from any thread.
 */
#ifndef CACHE_H
#define CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/attr.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/hash.h"
#include "common/base/list.h"
#include "origin/provider.h"
#include "common/base/timer.h"
#include "mount/cache/depth.h"

struct cache;
struct cache_item;
struct fill;
struct origin;
struct store;
struct store_scratch;

/* The maximum length of one cache_read(). */
#define CACHE_READ_MAX_BYTES ((size_t)1 << 20)

/* Hides some cached items from readers, so that an analysis sees a smaller
 * cache. */
struct cache_mask {
	/* Items whose key.hi is at least `limit` are not hits, and no item is
	 * admitted. CACHE_MASK_NONE: no item is hidden, and items are admitted.
	 * Relaxed; any thread may change it. */
	_Atomic uint64_t limit;
};

#define CACHE_MASK_NONE UINT64_MAX

struct cache_miss {
	struct hash128 key;
	uint64_t size_bytes;
	uint64_t planned_bytes; /* as in struct cache_status */
};

struct cache_config {
	/* The store, the origin, the timers and the counters must outlive the
	 * cache. */
	struct store *store;
	struct origin *origin;
	struct timers *timers;
	struct counters *counters;
	/* The providers, in the order in which they are asked before the
	 * origin. They outlive the cache. */
	struct provider *provider[PROVIDERS_MAX];
	unsigned nproviders;
	struct hash128 dataset; /* digest of the source, used in keys */
	uint64_t limit_bytes;	/* larger files are cut into chunks */
	uint64_t chunk_bytes;
	uint64_t staging_bytes; /* limit for items held in memory */
	/* Limit for the bytes that all requests to the origin ask for together;
	 * 0: no limit. */
	uint64_t inflight_bytes;
	/* Get the path of the file that a cookie stands for. Returns its
	 * length, -ESTALE if the version of the file is gone, or another
	 * -errno. Called with the cache's lock held. */
	int (*path)(void *arg, uint64_t cookie, char *buf, size_t size);
	/* Called without a lock when the origin has another version of the
	 * file. */
	void (*stale)(void *arg, uint64_t cookie);
	/* Called with the cache's lock held when an item that is in no tier has
	 * been served to its end. From then on only the kernel's page cache has
	 * the item. May be NULL. */
	void (*passed)(void *arg, const struct cache_item *item);
	/* Called with the cache's lock held when the first byte of an item is
	 * read and no tier has the item. May be NULL. */
	void (*missed)(void *missed_arg, const struct cache_miss *miss);
	void *missed_arg;
	void *arg;
	const struct cache_mask *mask;	 /* NULL except in an analysis */
	const struct event_sink *events; /* may be NULL */
};

/* Check that these sizes fit together. Returns 0, or -EINVAL with a message
 * that names the option. */
int cache_check_sizes(uint64_t limit_bytes, uint64_t chunk_bytes,
	uint64_t staging_bytes, struct error *err);

/* Create a cache. Returns 0, -EINVAL if sizes do not fit together, or another
 * -errno. */
int cache_new(struct cache **out, const struct cache_config *config,
	struct error *err);

/* Fail parked reads with -ENOTCONN, abandon requests in flight, finish
 * publications, and stop. Later reads fail with -ENOTCONN. */
void cache_stop(struct cache *c);
void cache_free(struct cache *c);

/* An item: a range of a file that is cached as a unit. */
struct cache_item {
	struct hash128 digest;	     /* digest of the path of the file */
	struct file_version version; /* version of the file */
	/* Number by which the caller knows the file */
	uint64_t cookie;
	uint64_t base, size; /* range in the file; size > 0 */
	/* No tier gets the item if it is fetched for this request, because
	 * plans admit only the files that they name. */
	bool barred;
};

/* Set base and size to those of the item that contains byte `off` of the
 * file. */
void cache_item_at(
	const struct cache *c, uint64_t off, struct cache_item *item);

/* Returns the key of the item's entry; see common/format/key.h. */
struct hash128 cache_key(const struct cache *c, const struct cache_item *item);

/* A read of an item. It stays in the caller's memory until it has been
 * answered. */
struct cache_read {
	/* Offset in the item; len is 1..CACHE_READ_MAX_BYTES */
	size_t off, len;
	/* Called once if cache_read() has parked the read. status is `len` or
	 * -errno. data is valid during the call. */
	void (*done)(struct cache_read *r, int status, const void *data);
	/*
	 * The caller sets these members. `planned`: the read belongs to a
	 * position of a plan. `ahead`: it belongs to one, but the reader does
	 * not wait for the bytes yet; so they are fetched with the priority of
	 * planned items, not with that of demand. `again`: the position has
	 * begun to read the item before, and again_bytes of the requested bytes
	 * were read then. `plan_readers`: the number of readers with plans that
	 * will read the item, including the reader of this read, if it is the
	 * first of them.
	 */
	bool planned, ahead, again;
	size_t again_bytes;
	unsigned plan_readers;
	pid_t thread; /* thread that reads, for traces; set by the caller */
	/* Set if cache_read() has returned `len`; valid until
	 * cache_read_end() */
	const void *data;
	struct fill *fill;  /* private; guarded by the lock of the cache */
	struct list link;   /* private; guarded by the lock of the cache */
	struct list waits;  /* private; guarded by the lock of the cache */
	uint64_t begun_ns;  /* private */
	uint64_t parked_ns; /* private; guarded by the lock of the cache */
	int status;	    /* private */
};

/*
 * Returns `len` if the read was answered at once: then r->data points to the
 * bytes until cache_read_end() or the next use of the scratch. Returns 0 if the
 * read was parked. Otherwise returns -errno: -ESTALE (the version is gone),
 * -EIO or -ETIMEDOUT.
 */
ssize_t cache_read(struct cache *c, struct store_scratch *s,
	const struct cache_item *item, struct cache_read *r);
void cache_read_end(struct cache *c, struct cache_read *r);

/* Is the item in a tier, and not hidden by a mask? */
bool cache_resident(struct cache *c, const struct cache_item *item);

/* Fetch bytes of an item before they are read, if memory is free. No other item
 * leaves memory for this, and waiting reads are served first. */
void cache_prefetch(
	struct cache *c, const struct cache_item *item, size_t off, size_t len);

/* A fetch of one item into a tier. */
struct cache_warm {
	/* Called once if cache_warm() has returned 0. status is 0 if the item
	 * is in a tier now, or -errno. */
	void (*done)(struct cache_warm *w, int status);
	struct list link; /* private; guarded by the lock of the cache */
	int status;	  /* private */
};

/* Start to fetch an item into a tier. Returns 0; -EEXIST if a tier has the item
 * already; -ENOSPC if no tier has enough space; -EAGAIN if admission is not
 * open yet; -ENOMEM; or -ENOTCONN. */
int cache_warm(
	struct cache *c, const struct cache_item *item, struct cache_warm *w);

/*
 * A plan to read an item. Planned items are fetched ahead in the order of the
 * calls. An item stays in memory until the reader of its plan has read it to
 * its end, a tier has it, or the plan is cancelled. An item may have several
 * plans: bytes that are still in memory after one reader also serve the next,
 * and prefetch_carried_bytes counts them.
 */
struct cache_plan {
	/*
	 * The time at which the item will be needed; 0: at once. May be set
	 * before cache_plan() and at any time after it. Relaxed, because small
	 * delays do no harm. An item that is not due soon is fetched with one
	 * request at a time.
	 */
	_Atomic uint64_t due_ns;
	/*
	 * The reader of this plan has begun to read the item. Set this before
	 * that reader calls the cache. From then on the plan ends when the
	 * whole item has been served. If the item has left memory, it is not
	 * fetched again for the plan.
	 */
	_Atomic bool read;
	/* Items of one owner are fetched in the order in which they were
	 * planned. Between owners, the item that is due first is fetched
	 * first. */
	const void *owner;
	/* The backlog of the owner, or NULL. It must outlive the plan. Guarded
	 * by cache.lock. */
	struct backlog *backlog;
	/*
	 * Called once, without a lock, if cache_plan() has returned 0. status
	 * is 1 if the reader has read the item to its end, 0 if a tier has the
	 * item, -ECANCELED after cache_unplan(), or another -errno if the fetch
	 * failed or the version is gone.
	 */
	void (*done)(struct cache_plan *p, int status);
	struct fill *fill; /* private; guarded by the lock of the cache */
	struct list link;  /* private; guarded by the lock of the cache */
	int status;	   /* private */
	/* Private: bytes of this plan that the origin still has to deliver */
	uint64_t owed_bytes;
	/* Set by cache_plan() if it returns 0: bytes that were missing and that
	 * no earlier plan of the item fetches. */
	uint64_t missing_bytes;
	/* Set with status 0: the item was fetched ahead into a tier, and nobody
	 * has read it yet. Only one of several plans of an item has this
	 * set. */
	bool unread;
};

/*
 * Plan an item. Returns 0; -EEXIST if a tier has the item; -EALREADY if the
 * reader of the plan has already read the item to its end; -EAGAIN if planned
 * items have all the memory that they may have; -ESTALE if the version is gone;
 * -ENOMEM; or -ENOTCONN.
 */
int cache_plan(
	struct cache *c, const struct cache_item *item, struct cache_plan *p);

/*
 * Cancel a plan, and drop bytes that were not read. *p must still exist: done()
 * is called during this call, or at about the same time by another thread.
 * `used`: the reader got the bytes from the kernel's page cache, without a
 * request to the mount. If these bytes are there because another reader of the
 * item read them from the mount, they count as carried.
 */
void cache_unplan(struct cache *c, struct cache_plan *p, bool used);

/* Note that the version of the item's file no longer exists: stop serving its
 * bytes, and delete its entry. */
void cache_invalidate(struct cache *c, const struct cache_item *item);

/* Mark the entry of an item that exists, before store_sweep(). */
void cache_mark(struct cache *c, const struct cache_item *item);

/* Wait until all current publications have ended, or for timeout_ns. */
void cache_settle(struct cache *c, uint64_t timeout_ns);

/* Counters of one provider. All but `asked` cover requests that have ended. */
struct cache_provider_counts {
	uint64_t asked; /* requests that were sent */
	uint64_t bytes; /* bytes that arrived and were used */
	/* hits: all bytes arrived; misses: the answer was -ENOENT */
	uint64_t hits, misses;
	uint64_t stale;	 /* the answer was -ESTALE */
	uint64_t late;	 /* requests given up after patience_ns */
	uint64_t failed; /* the answer was another -errno */
	uint64_t pushed; /* units that the provider accepted */
	/* Units that were not pushed, because too many bytes were in flight */
	uint64_t push_dropped;
};
/* Get the counters of cache_config.provider[provider]. */
void cache_provider_counts(struct cache *c, unsigned provider,
	struct cache_provider_counts *counts);

struct cache_status {
	uint64_t staging_bytes, staging_peak_bytes, staging_capacity_bytes;
	uint64_t inflight; /* requests to the origin in flight */
	uint64_t parked;   /* reads that wait for bytes */
	uint64_t waits_ns; /* time since the oldest of these reads was parked */
	/* Number of requests to keep in flight for bytes fetched ahead */
	uint64_t surplus_depth;
	uint64_t planned_bytes; /* size of planned items, fetched or not */
	/* The part of staging that planned items may use */
	uint64_t planned_capacity_bytes;
};
void cache_status(struct cache *c, struct cache_status *status);

/* The part of staging for bytes that are fetched ahead. It limits the planned
 * items. It also limits the sum of planned items and of all other items for
 * which no reader waits. */
uint64_t cache_ahead_bytes(const struct cache *c);

/* The shortest duration of about the last hundred requests to the origin; 0:
 * not known. Takes no lock. */
uint64_t cache_latency_ns(struct cache *c);

#endif

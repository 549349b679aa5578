/* SPDX-License-Identifier: MIT */
/*
 * The read-through cache: a read is answered from a tier, or joins the one
 * fetch of its item, however many readers ask for it. No caller is blocked: a
 * read that cannot be answered now is parked, and its callback runs when the
 * bytes come.
 *
 * An item is a whole file up to the limit, else one chunk of a larger file. All
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
 * cache. Any thread may change it. */
struct cache_mask {
	/* Items whose key.hi is at least this are not hits, and no item is
	 * admitted. CACHE_MASK_NONE: all can be hits, and items are admitted.
	 * Relaxed. */
	_Atomic uint64_t limit;
};

#define CACHE_MASK_NONE UINT64_MAX

struct cache_miss {
	struct hash128 key;
	uint64_t size_bytes;
	uint64_t planned_bytes; /* as in struct cache_status */
};

struct cache_config {
	struct store *store; /* this and the next three outlive the cache */
	struct origin *origin;
	struct timers *timers;
	struct counters *counters;
	/* Providers are asked in this order, before the origin; they outlive
	 * the cache. */
	struct provider *provider[PROVIDERS_MAX];
	unsigned nproviders;
	struct hash128 dataset; /* digest, for keys */
	uint64_t limit_bytes;	/* larger files are cut into chunks */
	uint64_t chunk_bytes;
	uint64_t staging_bytes; /* bound on items held in memory */
	/* Bytes for which requests to the origin may ask at a time; 0: the
	 * cache sets no limit. */
	uint64_t inflight_bytes;
	/* Get the path of the file that a cookie stands for. Returns its
	 * length, -ESTALE if that version is gone, or another -errno. Called
	 * with the cache's lock held. */
	int (*path)(void *arg, uint64_t cookie, char *buf, size_t size);
	/* Called, without a lock, when the origin's file has another version by
	 * now. */
	void (*stale)(void *arg, uint64_t cookie);
	/* Called when an item that is in no tier has been served to its end, so
	 * that only the kernel's page cache still has it. The cache's lock is
	 * held. May be NULL. */
	void (*passed)(void *arg, const struct cache_item *item);
	/* Called when the first byte of an item is read and no tier has it. The
	 * cache's lock is held. May be NULL. */
	void (*missed)(void *missed_arg, const struct cache_miss *miss);
	void *missed_arg;
	void *arg;
	const struct cache_mask *mask;	 /* NULL except in an analysis */
	const struct event_sink *events; /* may be NULL */
};

/* Check that these sizes fit together. Returns -EINVAL with a message that
 * names the option. */
int cache_check_sizes(uint64_t limit_bytes, uint64_t chunk_bytes,
	uint64_t staging_bytes, struct error *err);

/* Returns 0, -EINVAL if the limit of staging is too small for a few items, or
 * -ENOMEM. */
int cache_new(struct cache **out, const struct cache_config *config,
	struct error *err);

/* Fail parked reads with -ENOTCONN, abandon requests in flight, finish
 * publications, and stop. Later reads fail with -ENOTCONN. */
void cache_stop(struct cache *c);
void cache_free(struct cache *c);

/* An item: a range of a file that is cached as a unit. */
struct cache_item {
	struct hash128 digest;	     /* of the file's path */
	struct file_version version; /* of the file */
	uint64_t cookie;	     /* the caller's name for the file */
	uint64_t base, size;	     /* its range in the file; size > 0 */
};

/* Set base and size to the item that holds byte `off` of the file. */
void cache_item_at(
	const struct cache *c, uint64_t off, struct cache_item *item);

/* The key of the item's entry in a tier; see common/format/key.h. */
struct hash128 cache_key(const struct cache *c, const struct cache_item *item);

/* A read of an item, in the caller's memory until it has been answered. */
struct cache_read {
	size_t off, len; /* in the item; len 1..CACHE_READ_MAX_BYTES */
	/* Called once if cache_read() parked the read. status is `len` or
	 * -errno; data is valid during the call. */
	void (*done)(struct cache_read *r, int status, const void *data);
	/*
	 * Set by the caller. `planned`: the read belongs to a position of a
	 * plan. `ahead`: in addition, the reader does not wait for it yet, so
	 * it is sent to the origin as a planned fetch and not as demand.
	 * `again`: this position began to read the item before, and has already
	 * read again_bytes of these bytes. `plan_readers`: the number of
	 * readers with plans that will read the item, if this reader is the
	 * first of them and included.
	 */
	bool planned, ahead, again;
	size_t again_bytes;
	unsigned plan_readers;
	const void *data;  /* after an answer at once: until cache_read_end() */
	struct fill *fill; /* private: lock of the cache */
	struct list link;  /* private: lock of the cache */
	uint64_t parked_ns; /* private: lock of the cache */
	int status;	    /* private */
};

/*
 * Returns len if the read was answered at once: r->data holds the bytes until
 * cache_read_end() or the next use of the scratch. Returns 0 if it was parked.
 * Otherwise returns -errno: -ESTALE (the version is gone), -EIO, -ETIMEDOUT.
 */
ssize_t cache_read(struct cache *c, struct store_scratch *s,
	const struct cache_item *item, struct cache_read *r);
void cache_read_end(struct cache *c, struct cache_read *r);

/* Is the item in a tier, and not hidden by a mask? */
bool cache_resident(struct cache *c, const struct cache_item *item);

/* Fetch bytes of an item before they are read, if memory is free. This
 * displaces nothing, and reads that wait are served first. */
void cache_prefetch(
	struct cache *c, const struct cache_item *item, size_t off, size_t len);

/* A fetch of one item into a tier. */
struct cache_warm {
	/* Called once if cache_warm() returned 0. status is 0 if the item is in
	 * a tier now, or -errno. */
	void (*done)(struct cache_warm *w, int status);
	struct list link; /* private: lock of the cache */
	int status;	  /* private */
};

/*
 * Start to fetch an item into a tier. Returns 0, -EEXIST if it is in a tier
 * already, -ENOSPC if no tier has room for it, -EAGAIN if admission is not open
 * yet, -ENOMEM, or -ENOTCONN.
 */
int cache_warm(
	struct cache *c, const struct cache_item *item, struct cache_warm *w);

/*
 * An item that will be read. It is fetched ahead, in the order of the calls,
 * and stays in memory until its own reader has read it to its end, it is in a
 * tier, or it is not planned any more. An item may be planned several times:
 * bytes that are still in memory after one reader serve the next, and
 * prefetch_carried_bytes counts them.
 */
struct cache_plan {
	/*
	 * The time at which it will be needed; 0: at once. Set before
	 * cache_plan() and at any time after it; relaxed, because small delays
	 * do not matter. Items that are not due soon are fetched by one request
	 * at a time.
	 */
	_Atomic uint64_t due_ns;
	/*
	 * The plan's own reader has started on the item. Set this before that
	 * reader asks the cache. From then on the plan ends when the whole item
	 * has been served, and an item that is no longer in memory is not
	 * fetched again for the plan.
	 */
	_Atomic bool read;
	/* Items of one owner are fetched in the order in which they were
	 * planned; items of several owners by the time at which they are
	 * due. */
	const void *owner;
	/* The owner's backlog, or NULL. It outlives the plan; cache.lock guards
	 * it. */
	struct backlog *backlog;
	/*
	 * Called once if cache_plan() returned 0, without a lock. status is 1
	 * if the reader has read the item to its end, 0 if the item is in a
	 * tier, -ECANCELED after cache_unplan(), or another -errno if the fetch
	 * failed or the version is gone.
	 */
	void (*done)(struct cache_plan *p, int status);
	struct fill *fill; /* private: lock of the cache */
	struct list link;  /* private: lock of the cache */
	int status;	   /* private */
	/* Private: bytes that the origin still has to deliver */
	uint64_t owed_bytes;
	/* Set by cache_plan() if it returned 0: bytes that were missing and
	 * that no earlier plan fetches. */
	uint64_t missing_bytes;
	/* Set with status 0: the item was fetched ahead, and no reader has come
	 * for it. Only one of several plans of an item has this set. */
	bool unread;
};

/*
 * Plan an item. Returns 0; -EEXIST if it is in a tier; -EALREADY if its reader
 * has come in the meantime and read it to its end; -EAGAIN if planned items may
 * not have more memory now; -ESTALE if the version is gone; -ENOMEM or
 * -ENOTCONN.
 */
int cache_plan(
	struct cache *c, const struct cache_item *item, struct cache_plan *p);

/*
 * Cancel a plan. *p must still exist: done() is called during this call, or
 * shortly before or after it by another thread. Bytes that were not read are
 * dropped. `used`: the reader has the bytes although the mount did not serve
 * them, so it got them from the kernel's page cache. If another reader of the
 * item left them there, they count as carried.
 */
void cache_unplan(struct cache *c, struct cache_plan *p, bool used);

/* The version of this item's file no longer exists: stop serving its bytes, and
 * delete its entry. */
void cache_invalidate(struct cache *c, const struct cache_item *item);

/* Mark the entry of an item that exists; see store_unmark_all(). */
void cache_mark(struct cache *c, const struct cache_item *item);

/* Wait until all current publications have ended, at most timeout_ns. */
void cache_settle(struct cache *c, uint64_t timeout_ns);

/* Counters of one provider; all but `asked` cover answered requests. */
struct cache_provider_counts {
	uint64_t asked;	       /* reads */
	uint64_t bytes;	       /* bytes that came and were used */
	uint64_t hits, misses; /* hits: all bytes came; misses: -ENOENT */
	uint64_t stale;	       /* -ESTALE */
	uint64_t late;	       /* given up after patience_ns */
	uint64_t failed;       /* any other -errno */
	uint64_t pushed;       /* units that the provider accepted */
	/* Units not pushed, because too many bytes were being pushed */
	uint64_t push_dropped;
};
/* `provider` is the index in the configuration. */
void cache_provider_counts(struct cache *c, unsigned provider,
	struct cache_provider_counts *counts);

struct cache_status {
	uint64_t staging_bytes, staging_peak_bytes, staging_capacity_bytes;
	uint64_t inflight;	/* origin requests */
	uint64_t parked;	/* reads that wait for bytes */
	uint64_t surplus_depth; /* requests kept going ahead of readers */
	uint64_t planned_bytes; /* of items that are planned, fetched or not */
	/* The part of staging for planned items */
	uint64_t planned_capacity_bytes;
};
void cache_status(struct cache *c, struct cache_status *status);

/* The part of staging for items that are fetched ahead. It is the limit for
 * planned items, and for these together with all other fetches for which no
 * reader waits. */
uint64_t cache_ahead_bytes(const struct cache *c);

/* The shortest recent duration of a request to the origin; 0: unknown. Takes no
 * lock. */
uint64_t cache_latency_ns(struct cache *c);

#endif

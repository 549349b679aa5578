/* SPDX-License-Identifier: MIT */
/*
 * Fills, and the tables and sums over all of them. Each struct below belongs to
 * the files that its comment names; other files call their functions.
 *
 * A fill is one item that is being fetched or is held in memory. Readers may
 * join it while it is in the table. Its phases, and the calls that change them:
 *
 *  WAITING                    fill_find_or_make(): it waits for memory
 *    -> FETCHING              fill_take_room()
 *  FETCHING
 *    -> MOVING                part_load(), part_spill(): a part of a chunk is
 *                             read from a tier, or written to one
 *    -> PUBLISHING            fill_complete(): all pages are present, and a
 *                             tier has space
 *    -> STAGED                fill_complete(): all pages are present, and no
 *                             tier has space
 *  MOVING
 *    -> FETCHING              part_end(): the job in fill_part.c has ended
 *    -> PUBLISHING, STAGED    fill_complete(), as from FETCHING
 *  PUBLISHING
 *    -> GONE                  fill_published(): its tier has it
 *    -> STAGED                fill_published(): its tier failed
 *  STAGED
 *    -> PUBLISHING            fill_offered(): the provider that was to keep the
 *                             item instead of the tiers is full, and a tier has
 *                             space
 *  all of these
 *    -> GONE                  fill_drop(): no thread uses it, and it was served
 *                             or its memory is needed
 *    -> GONE                  cache_unplan(): only the plan needed it
 *    -> GONE                  fill_fail(): the fetch failed, or the mount ends
 *    -> CEASED                fill_fail(-ESTALE), fill_cease(): its version no
 *                             longer exists
 *
 * GONE and CEASED fills are out of the table, and are freed with their last
 * reference. Each page of a fill is first ABSENT, then WANTED, INFLIGHT and
 * PRESENT. If the item is a whole file, all its pages become WANTED at once; of
 * a chunk, only the pages that are read.
 *
 * A fill has three more states, which do not depend on the phase:
 *
 *  claim: has a reader asked for the fill?
 *    ASKED -> PLANNED         cache_plan(): the fill was made for a plan
 *    PLANNED -> ASKED         fill_want(): a reader waits for it
 *    PLANNED -> UNREAD        fill_take_room(): it is fetched ahead
 *    ASKED -> UNREAD          cache_prefetch(): it was made for no reader
 *    UNREAD -> ASKED          fill_serve(), fill_published()
 *  offer: was it offered to a provider that may keep it instead of the tiers?
 *    NONE -> MADE             fill_offer(): the first unit is being pushed
 *    MADE -> REFUSED          fill_offered(): the provider is full
 *  tally: which counter counts bytes that are fetched or served again?
 *    FIRST -> CARRIED         fill_carry(): the fill has or had a plan
 *    FIRST, CARRIED -> REREAD    fill_join(): its reader has had it before
 */
#ifndef CACHE_FILL_IMPL_H
#define CACHE_FILL_IMPL_H

#include "common/base/clock.h"
#include "common/base/thread_pool.h"
#include "mount/cache/cache.h"
#include "mount/cache/cache_jobs_impl.h"
#include "origin/origin.h"
#include "mount/store/store.h"

/* Fills are divided into pages. A request to the origin is a run of pages. */
#define FILL_PAGE_BYTES STORE_PAGE_BYTES

/* After an item was served to its end, it stays in staging for this long,
 * because other readers of the file may be a little behind. */
#define DRAINED_GRACE_NS (50 * NS_PER_MS)
/* A staged item that other readers with plans will still read stays this long,
 * unless its memory is needed. The time is limited because these readers may
 * get the item from the kernel's page cache. */
#define AWAITED_GRACE_NS (60 * NS_PER_S)

/* An item counts as being read until this time after its last read. */
#define READING_NS NS_PER_S

/*
 * A later read of an item that was served to its end and has left memory is
 * likely to be for single pages that the kernel has dropped. So if the read has
 * at most this many bytes, the item is not fetched again as a whole. A read at
 * the beginning of the item is an exception: the kernel requests few bytes when
 * a program starts to read in small steps.
 */
#define AGAIN_MAX_BYTES (4 * FILL_PAGE_BYTES)
#define AGAIN_ITEMS 4096u

#define CACHE_BUCKETS 4096u

enum fill_phase {
	FILL_WAITING,
	FILL_FETCHING,
	FILL_MOVING, /* a job of fill_part.c reads or writes a part */
	FILL_PUBLISHING,
	FILL_STAGED,
	/* A fill in this phase or the next one is out of the table */
	FILL_GONE,
	FILL_CEASED,
};

enum fill_claim {
	CLAIM_ASKED,
	CLAIM_PLANNED, /* nothing has been fetched yet */
	/* Fetched or being fetched, but no reader has asked for it */
	CLAIM_UNREAD,
};

enum fill_offer { OFFER_NONE, OFFER_MADE, OFFER_REFUSED };

enum fill_tally { TALLY_FIRST, TALLY_CARRIED, TALLY_REREAD };

enum fetch_prio {
	PRIO_DEMAND, /* a reader is parked */
	PRIO_PLANNED,
	PRIO_FILL, /* fetched ahead without a plan, or for warming */
	PRIO_COUNT,
};

/* State and flags of a page. Its upper four bits are the level of the provider
 * to ask next. */
enum page_state {
	PAGE_ABSENT = 0,
	PAGE_WANTED = 1,
	PAGE_INFLIGHT = 2,
	PAGE_PRESENT = 3,
	PAGE_STATE_MASK = 3,
	PAGE_SERVED = 4, /* flag: the page was served since fill_turn() */
	/* Flag: a reader has had the page; for the next reader it counts as
	 * carried */
	PAGE_SPENT = 8,
};

/* A job that writes a fill to a tier, or reads a part of the fill from a
 * tier. */
struct fill_move {
	struct thread_job job;
	/* In a list of struct after until the job is submitted */
	struct list link;
	bool in_memory;	     /* the item is written to a tier in memory */
	struct cache *cache; /* set once */
	struct fill *fill;   /* set once: the fill that contains it */
};

/* In this struct and those below, cache.lock guards all members whose comment
 * does not say otherwise. */
struct fill {
	struct list bucket; /* in a bucket of the table */
	struct list queue;  /* in fill_table.queue while pages are wanted */
	/* In a list of struct cache_staging while the fill may be dropped */
	struct list age;
	/* In a list of struct after while its stale version is to be
	 * reported */
	struct list stale;
	struct fill_move move;
	struct list waiters;	/* parked reads: struct cache_read */
	struct list warms;	/* warmings that wait: struct cache_warm */
	struct list plans;	/* plans of the item: struct cache_plan */
	struct hash128 key;	/* set once */
	struct cache_item item; /* set once, but for `barred` */
	/* Handle at the origin; set by the first fetch */
	struct origin_file *file;
	char *path;		/* path of the file; set once; owned */
	struct reservation res; /* if charged, a tier will get the fill */
	enum fill_phase phase;
	enum fetch_prio prio;
	unsigned level; /* the provider to ask next for wanted pages */
	unsigned refs;	/* 1 for the table, and 1 for each user */
	unsigned npages, present, wanted, served;
	unsigned in_part; /* pages that a part in a tier has */
	/* Pages of a part. Belongs to fill_part.c, and while MOVING to its job
	 */
	uint8_t *map;
	/* Page at which the search for the next wanted page begins */
	unsigned cursor;
	unsigned npushing; /* units that are being pushed to providers */
	/* Result of offering the item to a provider that may keep it instead of
	 * the tiers: 0, or the error of a unit. */
	int offer_status;
	enum fill_claim claim;
	enum fill_offer offer;
	enum fill_tally tally;
	/* The flags below do not depend on the phase. */
	/* A request has failed, so the providers must be told when the fetch of
	 * the fill has ended. fill_settle() tells them and clears this */
	bool owing;
	/* The item is a file, so all its pages are wanted at once. Cleared if a
	 * read asks again for a few bytes */
	bool whole;
	/* The item was served to its end and stays for another plan. The flag
	 * is also valid while PUBLISHING, after a provider has refused the
	 * item. */
	bool turned;
	/* Readers with plans that have not read the item yet */
	unsigned plan_readers;
	uint64_t made_ns; /* set once */
	uint64_t last_read_ns;
	enum latency_kind from; /* the source of the last pages */
	uint8_t *memory;	/* owned */
	/* The bytes of the item: a page-aligned address in `memory`, because
	 * the kernel then copies whole pages in half as many steps. The bytes
	 * of an INFLIGHT page belong to its request; after that, any thread may
	 * read them. */
	uint8_t *buf;
	uint8_t page[]; /* enum page_state and a level for each page */
};

/* All fills, and queues of the fills that want pages. Used by fill.c;
 * fill_part.c only reads it. */
struct fill_table {
	struct list bucket[CACHE_BUCKETS];
	/* Fills with wanted pages, by fill.level and priority. */
	struct list queue[PROVIDERS_MAX + 1][PRIO_COUNT];
	unsigned nchunks; /* number of fills that may have a part in a tier */
};

/* The memory of fills. Used by fill.c, fill_part.c and staging_room.c. */
struct cache_staging {
	/* Fills that may be dropped to free memory, oldest first */
	struct list staged;
	/* Fills served completely, least recently read first */
	struct list drained;
	/* Fills served completely that other readers with plans will still read
	 */
	struct list awaited;
	uint64_t used, peak;
	/* Fires when a fill of `drained` or `awaited` must be dropped */
	struct timer timer;
};

/* Fills that are being written to tiers, and parts that are being read. Used by
 * fill_publish.c, fill_part.c and fill_serve.c. */
struct cache_moves {
	/* fills being published, and parts being read or written */
	unsigned npublishing;
	unsigned nmoving; /* parts being read or written */
	/* No part begins to be written after this time; 0: no limit. */
	uint64_t keep_until_ns;
	struct thread_pool *publishers;	  /* set once */
	struct thread_pool *part_threads; /* set once */
};

/* Counts of reads. Used by fill_serve.c and staging_room.c. */
struct cache_readers {
	uint64_t parked;
	struct list waiting; /* the parked reads in order of arrival */
	/* Time up to which starved_us and parked_us were counted */
	uint64_t counted_ns;
	/* The lower words of the keys of items that were served to their end
	 * and have left memory. A key is at index (key modulo AGAIN_ITEMS). */
	uint64_t passed[AGAIN_ITEMS];
};

static inline bool fill_page_is(
	const struct fill *f, size_t page, enum page_state state)
{
	return (f->page[page] & PAGE_STATE_MASK) == state;
}

static inline unsigned fill_page_level(const struct fill *f, size_t page)
{
	return f->page[page] >> 4;
}

/* Is the page wanted from the provider that the fill asks next? */
static inline bool fill_page_is_next(const struct fill *f, size_t page)
{
	return fill_page_is(f, page, PAGE_WANTED) &&
		fill_page_level(f, page) == f->level;
}

/* Returns the content bytes of n pages. The last page of an item may be
 * short. */
size_t fill_run_bytes(const struct fill *f, unsigned first, unsigned n);
/* Returns the number of pages for this many bytes. */
static inline unsigned fill_pages(size_t bytes)
{
	return (unsigned)((bytes + FILL_PAGE_BYTES - 1) / FILL_PAGE_BYTES);
}
/* Returns the address of a page. */
static inline uint8_t *fill_at(const struct fill *f, unsigned page)
{
	return f->buf + (size_t)page * FILL_PAGE_BYTES;
}
/* Copy bytes of a request to the address `at` bytes after the beginning of page
 * `first`. Needs no lock, because INFLIGHT pages belong to the request. */
void fill_put(struct fill *f, unsigned first, size_t at, const void *bytes,
	size_t len);
/* Returns the content bytes of all pages that lack a flag such as
 * PAGE_SERVED. */
uint64_t fill_bytes_without(const struct fill *f, unsigned flag);

/* Describe the item for providers. The fill owns the path. Needs no lock. */
void fill_describe(const struct fill *f, struct provider_item *item);
/* Move the reservation of the fill to the caller. *ceased: the version is gone.
 * Takes the lock. */
struct reservation fill_take_reservation(
	struct cache *c, struct fill *f, bool *ceased);

/* -- cache_item.c -- */

/* Get the path of the file of an item; the caller frees it. Returns 0, -ENOMEM,
 * an error of path(), or -ESTALE if the cookie stands for another file now. The
 * caller holds the lock. */
int item_path(struct cache *c, const struct cache_item *item, char **out);

void fill_table_init(struct cache *c); /* Call this before there are threads. */

/* -- fill.c; all assert the lock -- */

/* Returns the queue of fills that want pages from the provider of this
 * level. */
struct list *fill_queue(struct cache *c, unsigned level, enum fetch_prio prio);
/* Move the fill to the end of its queue if it still wants pages. */
void fill_queue_again(struct cache *c, struct fill *f);
/* Does a fill want pages from the origin for which no reader waits? */
bool fill_ahead_wanted(struct cache *c);

struct fill *fill_find(struct cache *c, struct hash128 key);
/* Find the fill of an item, or create it and add it to the table. Returns 0,
 * -ENOMEM, an error of path(), or -EEXIST if a tier has the item and last_try
 * is false. */
int fill_find_or_make(struct cache *c, const struct cache_item *item,
	struct hash128 key, enum fetch_prio prio, bool last_try,
	struct fill **out);
/* Call end() for each fill of the table that is not being published, because
 * the mount ends. */
typedef void fill_end_fn(
	struct cache *c, struct fill *f, int status, struct after *a);
void fill_end_all(struct cache *c, struct after *a, fill_end_fn *end);
void fill_ref(struct fill *f);
void fill_unref(struct cache *c, struct fill *f);
void fill_want(struct cache *c, struct fill *f, unsigned first, unsigned n,
	enum fetch_prio prio);
void fill_want_bytes(struct cache *c, struct fill *f, size_t off, size_t len,
	enum fetch_prio prio);
/* Mark the fill as fetched before any reader has asked for it. */
void fill_prefetched(struct cache *c, struct fill *f);
void fill_reserve(struct cache *c, struct fill *f);
/* Does the fill have a reservation, or is a job using its reservation? */
bool fill_has_tier(const struct fill *f);
bool fill_is_idle(const struct fill *f);
bool fill_has(const struct fill *f, size_t off, size_t len);
void fill_mark(
	struct fill *f, unsigned first, unsigned n, enum page_state state);
void fill_spend(struct fill *f);
void fill_line_up(struct cache *c, struct fill *f);
/* Take the fill out of the table, and end its reservation and its plans. `gone`
 * is the new phase: FILL_GONE or FILL_CEASED. */
void fill_leave_table(struct cache *c, struct fill *f, enum fill_phase gone);
/* Close the handle of the file at the origin. */
void fill_close_file(struct cache *c, struct fill *f);
/* End all plans of the fill. */
void fill_end_plans(struct cache *c, struct fill *f, int status);

/* -- fill.c, for providers; all assert the lock -- */

/* If no page of the fill is wanted or in flight any more, tell the providers,
 * if one of them has to be told. */
void fill_settle(struct cache *c, struct fill *f);
/* Note that the push of a unit of the fill has ended; see fill_pushing(). */
void fill_pushed(struct cache *c, struct fill *f);
/* Are all these pages present, and did the origin deliver at least one? */
bool fill_is_news(const struct cache *c, const struct fill *f, unsigned first,
	unsigned n);
/* Find the next run of INFLIGHT pages in [*i, end). Returns its length, and
 * sets *i to the page after it. Returns 0 if there is none. */
unsigned fill_run_inflight(const struct fill *f, unsigned end, unsigned *i);

/* Note that a push of a unit of the fill begins. Takes a reference to the fill,
 * which fill_pushed() drops. */
static inline void fill_pushing(struct fill *f)
{
	fill_ref(f);
	f->npushing++;
}

/* Find the unit that contains page *first. Sets *first to the first page of the
 * unit, and returns its number of pages. */
static inline unsigned fill_unit_at(
	const struct fill *f, unsigned unit, unsigned *first)
{
	*first = unit ? *first / unit * unit : 0;
	return unit && f->npages - *first > unit ? unit : f->npages - *first;
}

/* Note that the fill is offered to a provider that may keep the item instead of
 * the tiers. */
static inline void fill_offer(struct fill *f)
{
	if (f->offer == OFFER_NONE)
		f->offer = OFFER_MADE;
}

/* Note that providers must be told when the fetch of the fill has ended. */
static inline void fill_owe(struct fill *f)
{
	f->owing = true;
}

/* Note that the item has or had a plan. From now on, bytes that are served
 * again count as carried. */
static inline void fill_carry(struct fill *f)
{
	if (f->tally == TALLY_FIRST)
		f->tally = TALLY_CARRIED;
}

static inline bool fill_is_gone(const struct fill *f)
{
	return f->phase >= FILL_GONE;
}

static inline bool fill_is_demand(const struct fill *f)
{
	return f->prio == PRIO_DEMAND;
}

/* Want these pages from the provider of this level, because the providers
 * before it do not have them. */
void fill_ask_next(struct cache *c, struct fill *f, unsigned first, unsigned n,
	unsigned level);
/* Does the fill want pages from the provider of fill.level? */
bool fill_wants_level(struct cache *c, const struct fill *f);

/* -- staging_room.c; all but room_init() assert the lock -- */

void room_init(struct cache *c);
/* Cancel the timer, because the cache is being stopped. */
void room_quiet(struct cache *c);
void room_status(struct cache *c, struct cache_status *status);
int fill_take_room(struct cache *c, struct fill *f);
bool fill_leaves_little_room(struct cache *c, const struct fill *f);
void fill_turn(struct cache *c, struct fill *f);
void fill_pass(struct cache *c, struct fill *f);
/* Call cache_config.passed(), because the item was served completely and has no
 * tier. */
void fill_tell_passed(struct cache *c, const struct fill *f);
void fill_drop(struct cache *c, struct fill *f);

/* -- fill_serve.c; all assert the lock -- */

void readers_status(struct cache *c, struct cache_status *status);
void fill_begun(struct cache *c, struct fill *f);

static inline enum fetch_prio read_prio(const struct cache_read *r)
{
	return r->ahead ? PRIO_PLANNED : PRIO_DEMAND;
}

/* Answer a read from the memory of the fill and return its length, or park the
 * read and return 0. */
ssize_t fill_join(struct cache *c, struct fill *f, struct cache_read *r);
void fill_warm(struct cache *c, struct fill *f, struct cache_warm *w);
/* Note that pages have arrived. `answered`: they are the last ones of their
 * request for this fill. */
void fill_arrived(struct cache *c, struct fill *f, unsigned first, unsigned n,
	bool answered, struct after *a);
void fill_answer(struct cache *c, struct fill *f, struct after *a);
void fill_complete(struct cache *c, struct fill *f, struct after *a);
void fill_halt(struct cache *c, struct fill *f, int status, struct after *a);
void fill_fail(struct cache *c, struct fill *f, int status, struct after *a);
/* End a fill of the table whose version no longer exists. */
void fill_cease(struct cache *c, struct fill *f, struct after *a);
/* Handle the result of a publication. Returns true if the version of the fill
 * no longer exists. */
bool fill_published(struct cache *c, struct fill *f, int rc, struct after *a);
/* Functions of jobs; jobs_run() calls them without the lock. */
struct fill *read_run(struct cache *c, struct list *link);
struct fill *warm_run(struct cache *c, struct list *link);
struct fill *stale_run(struct cache *c, struct list *link);

/* -- cache_planned.c; all but planned_run() assert the lock -- */

/* Returns the size of all fills with plans. */
uint64_t planned_bytes(struct cache *c);
/* Set the number of bytes that the origin still has to deliver for a plan. */
void planned_owe(struct cache *c, struct cache_plan *p, uint64_t bytes);
/* End a plan. jobs_run() tells its owner. */
void planned_tell(struct cache *c, struct cache_plan *p, int status);
/* The functions below get the list of a fill's plans. This one returns the
 * earliest due time; 0 if there are no plans. */
uint64_t planned_due_ns(struct cache *c, const struct list *plans);
/* Does one of the plans require the item as fast as possible? */
bool planned_at_once(struct cache *c, const struct list *plans);
bool planned_owned(
	struct cache *c, const struct list *plans, const void *owner);
/* Note that the origin has delivered bytes of the item. `answered`: a request
 * is complete. */
void planned_came(
	struct cache *c, struct list *plans, size_t bytes, bool answered);
/* Note that a tier has the item and nobody has read the entry yet. The owner of
 * the first plan will report the first read. */
void planned_unread(struct cache *c, struct list *plans);
/* Note that all `bytes` of the item were served: end the plans whose own reader
 * has begun to read. jobs_run() tells their owners. */
void planned_read(struct cache *c, struct list *plans, uint64_t bytes);
/* End all plans of an item of `bytes` bytes. jobs_run() tells their owners.
 * Returns false if there were none. */
bool planned_end(
	struct cache *c, struct list *plans, uint64_t bytes, int status);
/* Function of a job; called without the lock. */
struct fill *planned_run(struct cache *c, struct list *link);

/* The functions of fill_publish.c. */
int publish_start(struct cache *c, struct error *err);
/* Wait until all publications have ended. Asserts that the lock is held. */
void publish_wait(struct cache *c);
void publish_stop(struct cache *c);
struct fill *publish_run(struct cache *c, struct list *link, struct after *a);
void publish_ended(struct cache *c); /* Asserts that the lock is held. */

#endif

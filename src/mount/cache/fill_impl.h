/* SPDX-License-Identifier: MIT */
/*
 * Fills, and the tables and sums over all of them. Each struct below belongs to
 * one file; other files call its functions.
 *
 * A fill is one item being fetched or held in memory. It lives in the table
 * while readers may join it. Its phases, and the calls that change them:
 *
 *	WAITING     fill_find_or_make(): for room in staging
 *	  -> FETCHING    fill_take_room()
 *	FETCHING
 *	  -> MOVING      part_load(), part_spill(): a part of a chunk is read
 *	                 from a tier, or written to one
 *	  -> PUBLISHING  fill_complete(): all pages came, and a tier has room
 *	  -> STAGED      fill_complete(): ... and no tier has room
 *	MOVING
 *	  -> FETCHING    the end of the job in fill_part.c
 *	  -> PUBLISHING, STAGED    as from FETCHING
 *	PUBLISHING
 *	  -> GONE        fill_published(): it is in its tier
 *	  -> STAGED      fill_published(): the tier failed
 *	STAGED
 *	  -> PUBLISHING  fill_offered(): the provider that was to keep it
 *	                 instead of the tiers has no room, and a tier has
 *	all of these
 *	  -> GONE        fill_drop(): it is idle, and was served or must go
 *	  -> GONE        cache_unplan(): only the plan wanted it
 *	  -> GONE        fill_fail(): the fetch failed, or the mount ends
 *	  -> CEASED      fill_fail(-ESTALE), fill_cease(): its version is gone
 *
 * GONE and CEASED fills are out of the table and are freed with their last
 * reference. Pages of a fill are ABSENT, WANTED, INFLIGHT, PRESENT, in this
 * order; an item that is a whole file wants all its pages at once, a chunk only
 * the pages that are read.
 *
 * A fill has three more states, which do not depend on the phase:
 *
 *	claim: has a reader asked for it?
 *	  ASKED -> PLANNED    cache_plan(): it was made for a plan
 *	  PLANNED -> ASKED    fill_want(): a reader waits for it
 *	  PLANNED -> UNREAD   fill_take_room(): it is fetched ahead
 *	  ASKED -> UNREAD     cache_prefetch(): it was made for no reader
 *	  UNREAD -> ASKED     fill_serve(), fill_published()
 *	offer: to a provider that may keep it instead of the tiers
 *	  NONE -> MADE        fill_offer(): the first unit is on its way
 *	  MADE -> REFUSED     fill_offered(): the last unit had no room
 *	tally: what bytes that are fetched or served again count as
 *	  FIRST -> CARRIED    fill_carry(): it was planned, or a plan came to it
 *	  FIRST, CARRIED -> REREAD    fill_join(): its reader had it before
 */
#ifndef CACHE_FILL_IMPL_H
#define CACHE_FILL_IMPL_H

#include "common/base/clock.h"
#include "common/base/thread_pool.h"
#include "mount/cache/cache.h"
#include "mount/cache/cache_jobs_impl.h"
#include "origin/origin.h"
#include "mount/store/store.h"

/* The pages of a fill. A request to the origin is a run of them. */
#define FILL_PAGE_BYTES STORE_PAGE_BYTES

/* A staged item that was served completely stays this long after its last read,
 * for readers of the same file that are a little behind. */
#define DRAINED_GRACE_NS (50 * NS_PER_MS)
/* An item that other readers with plans will still read stays this long,
 * unless its memory is needed. They may get it from the kernel's page cache
 * instead. */
#define AWAITED_GRACE_NS (60 * NS_PER_S)

/* An item counts as being read for this long after a read. */
#define READING_NS NS_PER_S

/*
 * A read of at most this many bytes, of an item that was served to its end and
 * is gone, is for single pages that the kernel has dropped. It is no reason to
 * fetch the whole item again. A read at the item's beginning is different: the
 * kernel asks for little when a program starts to read in small steps.
 */
#define AGAIN_MAX_BYTES (4 * FILL_PAGE_BYTES)
#define AGAIN_ITEMS 4096u

#define CACHE_BUCKETS 4096u

enum fill_phase {
	FILL_WAITING,
	FILL_FETCHING,
	FILL_MOVING, /* fill_part.c */
	FILL_PUBLISHING,
	FILL_STAGED,
	FILL_GONE, /* GONE and CEASED fills are out of the table */
	FILL_CEASED,
};

enum fill_claim {
	CLAIM_ASKED,
	CLAIM_PLANNED, /* nothing has been fetched yet */
	CLAIM_UNREAD,  /* fetched, or being fetched, but no reader has asked */
};

enum fill_offer { OFFER_NONE, OFFER_MADE, OFFER_REFUSED };

enum fill_tally { TALLY_FIRST, TALLY_CARRIED, TALLY_REREAD };

enum fetch_prio {
	PRIO_DEMAND, /* a reader is parked */
	PRIO_PLANNED,
	PRIO_FILL, /* read-ahead and warming */
	PRIO_COUNT,
};

/* The upper half of a page is the provider to ask next. */
enum page_state {
	PAGE_ABSENT = 0,
	PAGE_WANTED = 1,
	PAGE_INFLIGHT = 2,
	PAGE_PRESENT = 3,
	PAGE_STATE_MASK = 3,
	PAGE_SERVED = 4, /* flag: served since fill_turn() */
	/* Flag: a reader has had it; for the next it counts as carried */
	PAGE_SPENT = 8,
};

/* A job that writes a fill to a tier, or reads a part of it from one. */
struct fill_move {
	struct thread_job job;
	struct list link;    /* in an after's list, to be submitted */
	struct cache *cache; /* set once */
	struct fill *fill;   /* set once: the fill that contains it */
};

/* All members, here and below, are guarded by cache.lock unless their comment
 * says otherwise. */
struct fill {
	struct list bucket; /* in the table */
	struct list queue;  /* in fill_table.queue, if something is wanted */
	/* In a list of staging, if the fill may be dropped */
	struct list age;
	struct list stale; /* in an after's list, then none */
	struct fill_move move;
	struct list waiters;	  /* of struct cache_read */
	struct list warms;	  /* of struct cache_warm */
	struct list plans;	  /* of struct cache_plan */
	struct hash128 key;	  /* set once */
	struct cache_item item;	  /* set once */
	struct origin_file *file; /* set by the first fetch */
	char *path;		  /* set once; owned */
	struct reservation res;	  /* if charged, the fill will be published */
	enum fill_phase phase;
	enum fetch_prio prio;
	unsigned level; /* the provider to ask next for the wanted pages */
	unsigned refs;	/* one for the table, and one for each use */
	unsigned npages, present, wanted, served;
	unsigned in_part; /* present pages that a tier has as a part */
	/* Belongs to fill_part.c; while MOVING, to its job */
	uint8_t *map;
	/* Where the search for the next wanted page begins */
	unsigned cursor;
	unsigned npushing; /* units on their way to providers */
	/* Result of the pushes to a provider that may keep the item instead of
	 * tiers. */
	int offer_status;
	enum fill_claim claim;
	enum fill_offer offer;
	enum fill_tally tally;
	/* The flags below do not depend on the phase. A fetch may set `owing`
	 * repeatedly; fill_settle() clears it. */
	bool owing; /* providers must be told when nothing more comes */
	/* All pages are wanted; a read for few bytes clears it once */
	bool whole;
	/* The item was served to its end, and stays for another plan. The flag
	 * is also valid while PUBLISHING, after a provider has refused the
	 * item. */
	bool turned;
	unsigned plan_readers; /* readers with plans that are still to come */
	uint64_t made_ns;      /* set once */
	uint64_t last_read_ns;
	uint8_t *memory; /* owned */
	/* The item's bytes, in `memory` and page-aligned: the kernel copies
	 * whole pages in half as many steps. The bytes of an INFLIGHT page
	 * belong to its request; later everybody may read them. */
	uint8_t *buf;
	uint8_t page[]; /* enum page_state */
};

/* All fills, and queues of the fills that want something. Belongs to fill.c;
 * fill_part.c reads it. */
struct fill_table {
	struct list bucket[CACHE_BUCKETS];
	/* Fills with wanted pages, by fill.level. */
	struct list queue[PROVIDERS_MAX + 1][PRIO_COUNT];
	unsigned nchunks; /* number of fills of which tiers may keep parts */
};

/* The memory of fills. Belongs to fill.c, fill_part.c and
 * staging_room.c. */
struct cache_staging {
	struct list staged;  /* may be dropped for their memory, oldest first */
	struct list drained; /* completely served, least recently read first */
	/* The same, but other readers with plans will come */
	struct list awaited;
	uint64_t used, peak;
	struct timer timer; /* drops drained fills */
};

/* Fills that are being written to tiers, and parts that are being read. Belongs
 * to fill_publish.c, fill_part.c and fill_serve.c. */
struct cache_moves {
	unsigned npublishing; /* publications and parts being written */
	unsigned nmoving;     /* parts */
	/* No write of a part begins after this time; 0: no limit. */
	uint64_t keep_until_ns;
	struct thread_pool *publishers;	  /* set once */
	struct thread_pool *part_threads; /* set once */
};

/* Counts of reads. Belongs to fill_serve.c and staging_room.c. */
struct cache_readers {
	uint64_t parked;
	/* starved_us and parked_us are counted up to this time */
	uint64_t counted_ns;
	/* Keys of items that were served and are gone, each at its key modulo
	 * AGAIN_ITEMS. */
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

/* Is the page wanted from the fill's next provider? */
static inline bool fill_page_is_next(const struct fill *f, size_t page)
{
	return fill_page_is(f, page, PAGE_WANTED) &&
		fill_page_level(f, page) == f->level;
}

/* Content bytes of n pages: the last one of an item can be short. */
size_t fill_run_bytes(const struct fill *f, unsigned first, unsigned n);
/* The number of pages for this many bytes. */
static inline unsigned fill_pages(size_t bytes)
{
	return (unsigned)((bytes + FILL_PAGE_BYTES - 1) / FILL_PAGE_BYTES);
}
/* Copy bytes of a request to `at` bytes behind the beginning of page `first`.
 * Needs no lock: the pages are INFLIGHT, so they belong to the caller. */
void fill_put(struct fill *f, unsigned first, size_t at, const void *bytes,
	size_t len);
/* Content bytes of the pages that lack a flag, such as PAGE_SERVED. */
uint64_t fill_bytes_without(const struct fill *f, unsigned flag);

/* Describe the item for providers. The path belongs to the fill. Needs no
 * lock. */
void fill_describe(const struct fill *f, struct provider_item *item);
/* Take the reservation from the fill; the caller owns it then. Takes the
 * lock. */
struct reservation fill_take_reservation(
	struct cache *c, struct fill *f, bool *ceased);

/* -- cache_item.c -- */

/*
 * Get the path of the item's file; the caller frees it. Returns 0, -ENOMEM, an
 * error of path(), or -ESTALE if the cookie now stands for another file. Lock
 * held.
 */
int item_path(struct cache *c, const struct cache_item *item, char **out);

void fill_table_init(struct cache *c); /* before there are threads */

/* -- fill.c; all assert the lock -- */

/* The fills that want pages from the provider of this level. */
struct list *fill_queue(struct cache *c, unsigned level, enum fetch_prio prio);
/* Move the fill to the end of its queue if it still wants pages. */
void fill_queue_again(struct cache *c, struct fill *f);
/* Does a fill want pages from the origin that no reader waits for? */
bool fill_ahead_wanted(struct cache *c);

struct fill *fill_find(struct cache *c, struct hash128 key);
/*
 * Find a fill, or add it to the table. Returns 0, -ENOMEM, an error of path(),
 * or -EEXIST if it is in a tier and this is not the last try.
 */
int fill_find_or_make(struct cache *c, const struct cache_item *item,
	struct hash128 key, enum fetch_prio prio, bool last_try,
	struct fill **out);
/* End each fill of the table that is not being published, as the mount ends. */
typedef void fill_end_fn(
	struct cache *c, struct fill *f, int status, struct after *a);
void fill_end_all(struct cache *c, struct after *a, fill_end_fn *end);
void fill_ref(struct fill *f);
void fill_unref(struct cache *c, struct fill *f);
void fill_want(struct cache *c, struct fill *f, unsigned first, unsigned n,
	enum fetch_prio prio);
void fill_want_bytes(struct cache *c, struct fill *f, size_t off, size_t len,
	enum fetch_prio prio);
/* Mark the fill as fetched before anybody has asked for it. */
void fill_prefetched(struct cache *c, struct fill *f);
void fill_reserve(struct cache *c, struct fill *f);
/* Does the fill have a reservation in a tier, or did it have one that a job has
 * taken? */
bool fill_has_tier(const struct fill *f);
bool fill_is_idle(const struct fill *f);
bool fill_has(const struct fill *f, size_t off, size_t len);
void fill_mark(
	struct fill *f, unsigned first, unsigned n, enum page_state state);
void fill_spend(struct fill *f);
void fill_line_up(struct cache *c, struct fill *f);
/* `gone` is FILL_GONE or FILL_CEASED. */
void fill_leave_table(struct cache *c, struct fill *f, enum fill_phase gone);
/* Closes the handle at the origin */
void fill_close_file(struct cache *c, struct fill *f);
/* End all plans of the fill. */
void fill_end_plans(struct cache *c, struct fill *f, int status);

/* -- fill.c, for providers; all assert the lock -- */

/* If no page of the fill is in flight any more, tell the providers that wait
 * for that. */
void fill_settle(struct cache *c, struct fill *f);
/* Note that a push of one of its units has ended; see fill_pushing(). */
void fill_pushed(struct cache *c, struct fill *f);
/* Are all of these pages present, and did some of them come from the origin? */
bool fill_is_news(const struct cache *c, const struct fill *f, unsigned first,
	unsigned n);
/* Find the next run of INFLIGHT pages from *i on. Returns its length, or 0, and
 * sets *i to its end. */
unsigned fill_run_inflight(const struct fill *f, unsigned end, unsigned *i);

/* Note that a push of one of its units begins. Takes a reference. */
static inline void fill_pushing(struct fill *f)
{
	fill_ref(f);
	f->npushing++;
}

/* Find the unit that contains page *first: sets *first to its first page and
 * returns its number of pages. */
static inline unsigned fill_unit_at(
	const struct fill *f, unsigned unit, unsigned *first)
{
	*first = unit ? *first / unit * unit : 0;
	return unit && f->npages - *first > unit ? unit : f->npages - *first;
}

/* Note that the fill is offered to a provider that may keep it instead of the
 * tiers. */
static inline void fill_offer(struct fill *f)
{
	if (f->offer == OFFER_NONE)
		f->offer = OFFER_MADE;
}

/* Note that providers must be told when nothing more of the fill comes. */
static inline void fill_owe(struct fill *f)
{
	f->owing = true;
}

/* A plan has or had the fill: from now on bytes that are served again count as
 * carried. */
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

/* Ask the provider of this level for pages that the providers before it did not
 * have. */
void fill_ask_next(struct cache *c, struct fill *f, unsigned first, unsigned n,
	unsigned level);
/* Does the fill want pages from the provider of its level? */
bool fill_wants_level(struct cache *c, const struct fill *f);

/* -- staging_room.c; all but room_init() assert the lock -- */

void room_init(struct cache *c);
void room_quiet(struct cache *c); /* sets no timer any more */
void room_status(struct cache *c, struct cache_status *status);
int fill_take_room(struct cache *c, struct fill *f);
bool fill_leaves_little_room(struct cache *c, const struct fill *f);
void fill_turn(struct cache *c, struct fill *f);
void fill_pass(struct cache *c, struct fill *f);
/* Report that the item was served completely, so that only the kernel still has
 * it. */
void fill_tell_passed(struct cache *c, const struct fill *f);
void fill_drop(struct cache *c, struct fill *f);

/* -- fill_serve.c; all assert the lock -- */

uint64_t readers_parked(struct cache *c); /* also counts their time */
void fill_begun(struct cache *c, struct fill *f);

static inline enum fetch_prio read_prio(const struct cache_read *r)
{
	return r->ahead ? PRIO_PLANNED : PRIO_DEMAND;
}

/* Answer a read from the fill's memory and return its length, or park it and
 * return 0. */
ssize_t fill_join(struct cache *c, struct fill *f, struct cache_read *r);
void fill_warm(struct cache *c, struct fill *f, struct cache_warm *w);
/* Note that pages have arrived. `answered`: the request has delivered
 * everything that it asks of this fill. */
void fill_arrived(struct cache *c, struct fill *f, unsigned first, unsigned n,
	bool answered, struct after *a);
void fill_answer(struct cache *c, struct fill *f, struct after *a);
void fill_complete(struct cache *c, struct fill *f, struct after *a);
void fill_halt(struct cache *c, struct fill *f, int status, struct after *a);
void fill_fail(struct cache *c, struct fill *f, int status, struct after *a);
/* Handle that the version of a fill in the table is gone. */
void fill_cease(struct cache *c, struct fill *f, struct after *a);
/* Handle the outcome of publishing. Returns true if the version is gone. */
bool fill_published(struct cache *c, struct fill *f, int rc, struct after *a);
/* Jobs; without the lock. */
struct fill *read_run(struct cache *c, struct list *link);
struct fill *warm_run(struct cache *c, struct list *link);
struct fill *stale_run(struct cache *c, struct list *link);

/* -- cache_planned.c; all but planned_run() assert the lock -- */

/* Bytes of fills with plans. */
uint64_t planned_bytes(struct cache *c);
/* Note how many bytes of the item are still to come. */
void planned_owe(struct cache *c, struct cache_plan *p, uint64_t bytes);
/* End the plan. */
void planned_tell(struct cache *c, struct cache_plan *p, int status);
/* The functions below take the plans of a fill. This one returns the earliest
 * due time; 0 without plans. */
uint64_t planned_due_ns(struct cache *c, const struct list *plans);
/* Does one of the plans want the item as fast as possible? */
bool planned_at_once(struct cache *c, const struct list *plans);
bool planned_owned(
	struct cache *c, const struct list *plans, const void *owner);
/* Note that the origin has delivered some of the item. `answered`: a request is
 * complete. */
void planned_came(
	struct cache *c, struct list *plans, size_t bytes, bool answered);
/* The item is in a tier and has not been read; its planner will report when it
 * is read from there. */
void planned_unread(struct cache *c, struct list *plans);
/* All `bytes` of the item were served: end the plans whose own reader has
 * started. jobs_run() tells their owners. */
void planned_read(struct cache *c, struct list *plans, uint64_t bytes);
/* End all plans of an item of `bytes`; jobs_run() tells their owners. Returns
 * false if there were none. */
bool planned_end(
	struct cache *c, struct list *plans, uint64_t bytes, int status);
/* A job; without the lock. */
struct fill *planned_run(struct cache *c, struct list *link);

/* fill_publish.c */
int publish_start(struct cache *c, struct error *err);
void publish_wait(struct cache *c); /* until none is left; needs the lock */
void publish_stop(struct cache *c);
struct fill *publish_run(struct cache *c, struct list *link);
void publish_ended(struct cache *c); /* needs the lock */

#endif

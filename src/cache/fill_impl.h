/* SPDX-License-Identifier: MIT */
/*
 * Inside the cache: fills, and the cache itself.
 *
 * A fill is one item being fetched or held in memory. It lives in the table
 * while readers may join it:
 *
 *                       room in staging
 *   WAITING (no memory) ----------------> FETCHING --+-- an error --> GONE
 *                                            |       |
 *                           all pages came   |       +-- idle, memory is
 *                                            |           wanted -> GONE
 *              room in a tier was reserved   |   no room in any tier
 *                      +---------------------+-------------+
 *                      v                                   v
 *                  PUBLISHING -- the tier failed -----> STAGED
 *                      |                                   |
 *                      | in its tier        all served and |
 *                      v                    idle, or memory is wanted
 *                     GONE <-------------------------------+
 *
 * A chunk that is FETCHING is MOVING while a part of it is read from a tier
 * or written to one (part.c). GONE fills are out of the table and go with
 * their last reference. Pages of a fill are ABSENT, WANTED, INFLIGHT, PRESENT,
 * in this order; an item of a whole file wants all of its pages at once, a
 * chunk only what is read of it.
 */
#ifndef CACHE_FILL_IMPL_H
#define CACHE_FILL_IMPL_H

#include <pthread.h>

#include "base/clock.h"
#include "base/pool.h"
#include "cache/cache.h"
#include "cache/depth_impl.h"
#include "cache/source_impl.h"
#include "origin/origin.h"
#include "store/store.h"

/* The pages of a fill. A request to the origin is a run of them. */
#define FILL_PAGE_BYTES ((size_t)4096)

/* A request that takes longer does not count against the depth any more. */
#define FETCH_SLOW_NS NS_PER_S

/*
 * A staged item whose every byte was served is kept this long after its last
 * read, for readers of the same file that are a little behind.
 */
#define DRAINED_GRACE_NS (50 * NS_PER_MS)

/* For so long after a read an item is taken to be in the middle of being read.
 */
#define READING_NS NS_PER_S

/*
 * Items planned for later than this, or than some multiple of a request's time,
 * are fetched one request at a time: they come early enough, and another reader
 * waits behind one request at most. It is long enough to fetch at full depth
 * everything needed until then.
 */
#define PLANNED_SOON_NS (NS_PER_S / 2)
#define PLANNED_SOON_LATENCIES 4u

/*
 * A limit for reads of an item that was served to its end and is gone. A read
 * of no more than this, except at the item's beginning, is for single pages
 * that the kernel has dropped, and no reason to fetch the whole item again. At
 * the beginning it is, as the kernel asks for no more when a program begins to
 * read in small pieces.
 */
#define AGAIN_MAX_BYTES (4 * FILL_PAGE_BYTES)
#define AGAIN_ITEMS 4096u

#define CACHE_BUCKETS 4096u
#define PUBLISHERS 2u
#define LOADERS 2u

enum fill_phase {
	FILL_WAITING,
	FILL_FETCHING,
	FILL_MOVING, /* part.c */
	FILL_PUBLISHING,
	FILL_STAGED,
	FILL_GONE,
};

enum fetch_prio {
	PRIO_DEMAND, /* a reader is parked */
	PRIO_PLANNED,
	PRIO_FILL, /* read-ahead and warming */
	PRIO_COUNT,
};

/* The upper half of a page is the source to ask next; see page_level(). */
enum page_state {
	PAGE_ABSENT = 0,
	PAGE_WANTED = 1,
	PAGE_INFLIGHT = 2,
	PAGE_PRESENT = 3,
	PAGE_STATE_MASK = 3,
	PAGE_SERVED = 4, /* flag: since the last turn */
	PAGE_SPENT = 8,	 /* flag: is a reader's; the next has it carried */
};

/* Everything is guarded by cache.lock, but where it says otherwise. */
struct fill {
	struct list bucket;  /* in the table */
	struct list queue;   /* in cache.queue, if something is wanted */
	struct list age;     /* in cache.staged or .drained, if it may go */
	struct list publish; /* in after.fills, then none */
	struct pool_job publish_job;
	struct list waiters;	  /* of struct cache_read */
	struct list warms;	  /* of struct cache_warm */
	struct list plans;	  /* of struct cache_plan */
	struct cache *cache;	  /* set once */
	struct hash128 key;	  /* set once */
	struct cache_item item;	  /* set once */
	struct origin_file *file; /* set by the first fetch */
	char *path;		  /* set once; owned */
	struct reservation res;	  /* charged: it will be published */
	enum fill_phase phase;
	enum fetch_prio prio;
	unsigned level; /* the source that is asked next, of wanted pages */
	unsigned refs;	/* the table's, and one for each use */
	unsigned npages, present, wanted, served;
	unsigned kept;	 /* of `present`, in a tier as a part */
	uint8_t *map;	 /* of part.c; while MOVING the job's alone */
	unsigned cursor; /* where to look for a wanted page next */
	bool whole;	 /* wants all pages */
	bool prefetched; /* nobody has asked for it yet */
	bool ahead;	 /* planned, and nothing has been fetched yet */
	bool carried;	 /* was planned: serving it again is carrying it */
	bool reread;	 /* fetched again for who has read it */
	bool fetched;	 /* some of it came from the origin */
	bool turned;	 /* was served to its end, and held for another plan */
	bool ceased;	 /* its version is gone */
	uint64_t last_read_ns;
	/* A page's bytes belong to its request while INFLIGHT, then to all. */
	uint8_t *buf;
	uint8_t page[]; /* enum page_state */
};

/* Pages of one fill that a request asks for. */
struct fetch_span {
	struct fill *f;
	unsigned first, n;
	unsigned there; /* of n, lock */
};

/*
 * One request to the origin: of one fill, or of neighbours in a file. Or to
 * another source, then of one fill.
 */
struct fetch {
	struct origin_read r; /* what is asked for, whomever */
	struct source_read s; /* the same, not of the origin */
	unsigned level;	      /* the source; cache.nsources: the origin */
	bool late;	      /* given up, not on a list any more */
	struct cache *c;
	struct list link;  /* in .inflight of the source, or cache.slow */
	struct list start; /* in after.starts */
	size_t got;	   /* bytes; the origin's threads, in turn */
	bool slow;	   /* on cache.slow */
	bool surplus;	   /* counted in cache.nsurplus */
	uint64_t started_ns;
	unsigned nspans;
	struct fetch_span span[];
};

struct cache {
	struct cache_config config; /* set once */
	size_t request_bytes;	    /* set once: of the origin, whole pages */
	pthread_mutex_t lock;
	pthread_cond_t idle_cond; /* published all, started all, or nothing in
				     flight */
	struct list table[CACHE_BUCKETS];
	/* The sources besides the origin, in the order in which they are asked.
	 */
	struct cache_source source[SOURCES_MAX];
	unsigned nsources; /* set once */
	unsigned nasking;  /* requests to them */
	unsigned npushing;
	/* Fills with wanted pages, by fill.level. */
	struct list queue[SOURCES_MAX + 1][PRIO_COUNT];
	struct list staged;   /* may go for their memory, oldest first */
	struct list drained;  /* all served, least recently read first */
	struct list inflight; /* of struct fetch, oldest first */
	struct list slow;     /* out for longer than FETCH_SLOW_NS */
	unsigned ninflight;   /* on cache.inflight */
	unsigned nsurplus;    /* of all, those that nobody waits for */
	struct depth surplus; /* how many of them there should be */
	unsigned nslow;
	unsigned nstarting;   /* of both lists, not given to the origin yet */
	unsigned npublishing; /* parts, too */
	unsigned nmoving;     /* parts */
	unsigned nchunks;     /* in the table, of which parts may be kept */
	uint64_t parked;
	uint64_t staging_used, staging_peak;
	uint64_t planned;	      /* bytes of fills with plans */
	struct list planned_done;     /* of struct cache_plan, to be told */
	uint64_t passed[AGAIN_ITEMS]; /* keys of items that were served and are
					 gone, by themselves modulo its size */
	struct timer dispatch_timer, drain_timer;
	struct timer last_timer; /* fires after all others have, at stop */
	bool timers_quiet;	 /* it has */
	bool stopping;
	uint64_t keep_until_ns;	 /* no part is begun to be written; 0: ever */
	struct pool *publishers; /* set once */
	struct pool *loaders;	 /* set once: of parts */
};

/*
 * Work to do once the lock has been released: callbacks and wake-ups of other
 * threads, which would run into the lock. Only engine_run() does it.
 */
struct after {
	struct list reads;
	struct list warms;
	struct list starts; /* of struct fetch */
	struct list fills;  /* to be published */
	struct list pushes; /* of struct push */
	struct fill *stale; /* tell the owner; holds a reference */
};

void after_init(struct after *a);

/* Start what can be started, run the callbacks; the lock is free then. */
void engine_run(struct cache *c, struct after *a);

/* Content bytes of the pages that lack a flag, such as PAGE_SERVED. */
uint64_t fill_bytes_without(const struct fill *f, unsigned flag);

/* fill.c; all assert the lock. */
struct fill *fill_find(struct cache *c, struct hash128 key);
int fill_new(struct cache *c, const struct cache_item *item, struct hash128 key,
	enum fetch_prio prio, struct fill **out);
/* -EEXIST: it is in a tier, and this is not the last try. read.c */
int fill_find_or_make(struct cache *c, const struct cache_item *item,
	struct hash128 key, enum fetch_prio prio, bool last_try,
	struct fill **out);
void fill_ref(struct fill *f);
void fill_unref(struct cache *c, struct fill *f);
void fill_want(struct cache *c, struct fill *f, unsigned first, unsigned n,
	enum fetch_prio prio);
void fill_reserve(struct cache *c, struct fill *f);
bool fill_is_idle(const struct fill *f);
void fill_drop(struct cache *c, struct fill *f);
bool fill_has(const struct fill *f, size_t off, size_t len);
void fill_serve(struct cache *c, struct fill *f, const struct cache_read *r);
void fill_begun(struct cache *c, struct fill *f);
void fill_spend(struct fill *f);
void fill_line_up(struct cache *c, struct fill *f);
void fill_turn(struct cache *c, struct fill *f);
void fill_pass(struct cache *c, struct fill *f);
int fill_take_room(struct cache *c, struct fill *f);
void fill_leave_table(struct cache *c, struct fill *f);
void fill_complete(struct cache *c, struct fill *f, struct after *a);
void fill_stage(struct cache *c, struct fill *f);
void fill_halt(struct cache *c, struct fill *f, int status, struct after *a);
void fill_fail(struct cache *c, struct fill *f, int status, struct after *a);
void fill_answer(struct cache *c, struct fill *f, struct after *a);
void fill_expire_drained(struct cache *c, uint64_t now_ns);

/* The queue that a fill with wanted pages belongs in. */
static inline struct list *fill_queue(struct cache *c, const struct fill *f)
{
	return &c->queue[f->level][f->prio];
}

/* Set the level to that of the wanted pages; the fill is on no queue. */
void fill_set_level(struct cache *c, struct fill *f);

/* fetch.c */
bool fetch_of_origin(const struct fetch *x);
size_t fetch_span_bytes(const struct fetch_span *p);
void fill_mark(
	struct fill *f, unsigned first, unsigned n, enum page_state state);
/* The answer will be for the request's fills. */
void fetch_receive(struct fetch *x);

/* dispatch.c; assert the lock. */
void dispatch_all(struct cache *c, struct after *a);
void dispatch_run(struct cache *c, struct fetch *x); /* drops it meanwhile */

/* planned.c; assert the lock. */
void planned_unread(struct fill *f);
bool planned_early(const struct fill *f, uint64_t now_ns, uint64_t soon_ns);
void planned_read(struct cache *c, struct fill *f);
void planned_end(struct cache *c, struct fill *f, int status);
void planned_came(struct cache *c, struct fill *f, size_t bytes, bool answered);
void planned_run(struct cache *c); /* lock dropped meanwhile */

/* publish.c */
int publish_start(struct cache *c, struct error *err);
void publish_wait(struct cache *c); /* until none is left; the lock */
void publish_stop(struct cache *c);
void publish_submit(struct cache *c, struct fill *f); /* without the lock */
/* The reservation is the caller's from then on. Takes the lock. */
struct reservation publish_take_reservation(
	struct cache *c, struct fill *f, bool *ceased);
void publish_ended(struct cache *c); /* wants the lock */

#endif

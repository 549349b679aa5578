/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the engine. Not for other parts.
 *
 * The planner walks the schedule and makes *steps*, which are batches under
 * construction. Each place of a step is a *serving*, the unit of work. Servings
 * of one decoded example share an *entry* of the pool, found by its fresh
 * number. The reader fills entries with encoded bytes; workers turn entries
 * into samples. The pool is only a cache: any serving can be made again from
 * the file, with the same pixels, so that dropping what an entry holds is
 * always allowed.
 *
 * One lock, that of base/turn.h, guards everything below, except members that
 * are set once or have an owner. It is held for a few list operations, never
 * while decoding or during a file operation. The consequences of a change are
 * handled at the end of the turn.
 */
#ifndef ENGINE_ENGINE_IMPL_H
#define ENGINE_ENGINE_IMPL_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/uring.h"
#include "dataset/dataset.h"
#include "engine/engine.h"
#include "engine/meter.h"
#include "image/image.h"
#include "auto/auto.h"
#include "settings/settings.h"
#include "base/memory.h"
#include "mount_help/mount_help.h"
#include "sample/sample.h"
#include "batch/batch.h"
#include "base/turn.h"
#include "schedule/schedule.h"
#include "store/store.h"

struct engine;
struct entries;
struct steps;
struct step;
struct read_op;

/* See entry.c for what leads from where to where. */
enum entry_state {
	ENTRY_ABSENT,  /* nothing is held; to be read if on a list */
	ENTRY_READING, /* a read_op has it */
	ENTRY_ENCODED, /* `encoded` holds the file */
	ENTRY_WORKING, /* one worker has it for itself */
	ENTRY_KEPT,    /* `kept` holds what the servings are made from */
	ENTRY_FAILED,  /* nothing will come: `error` says why */
};

/* Which list of the loader an entry is on. */
enum entry_list {
	ON_NONE,
	ON_URGENT, /* to be read for servings that are planned */
	ON_AHEAD,  /* to be read, not planned yet */
	ON_READY,  /* read ahead, not planned yet */
	ON_IDLE,   /* served, and to be served again, but not soon */
};

struct entry {
	struct entry *next; /* in its bucket, or free */
	struct list node;   /* of the list `on` */
	enum entry_list on;
	enum entry_state state;
	struct list waiting;	   /* servings that need it */
	struct schedule_slot slot; /* of the first serving that was met */
	/* The example that is read: that of the slot, or a substitute. */
	uint64_t index;
	struct example example;
	uint32_t attempt;    /* which substitute; 0: none */
	uint32_t tries;	     /* reads that failed in a way that may pass */
	int error;	     /* of the example of the slot, or 0 */
	char *why;	     /* the message with it, or NULL */
	int32_t error_stage; /* enum refrain_stage_name */
	uint64_t error_index;
	uint32_t left;	  /* servings to come, planned or not */
	uint32_t planned; /* of those: planned */
	uint32_t low;	  /* servings below are over */
	uint32_t users;	  /* workers that look at `kept` */
	bool planned_once;
	uint64_t last_step;	    /* planned, if planned_once */
	bool was_read, was_decoded; /* before: what comes is the second time */
	uint64_t since_ns;	    /* in its state */
	/* The image; owned by the worker that has the entry, then constant. */
	struct picture picture;
	/* Encoded bytes, after `skip` bytes that are a label. */
	struct buffer *encoded;
	size_t encoded_bytes, skip;
	size_t size_hint; /* how much room a read should have; 0: unknown */
	int64_t label;
	/* BEFORE: decoded; else: the sample itself. */
	struct buffer *kept;
	size_t kept_bytes;
	struct image image;		  /* jpeg: points into kept */
	uint32_t width, height, channels; /* decode(): what it said */
};

enum serving_state {
	SERVING_WAITS,
	SERVING_QUEUED,
	SERVING_WORKS,
	SERVING_DONE
};

struct serving {
	struct list node; /* entry->waiting or step->ready */
	struct step *step;
	struct entry *entry;
	uint32_t place, echo;
	uint64_t lag; /* steps since the one before; UINT64_MAX: none known */
	uint64_t since_ns;
	enum serving_state state;
};

/* A batch in the making. */
struct step {
	uint64_t number;
	uint32_t count, left; /* servings; those that are not done */
	struct list ready;    /* servings that a worker can take */
	struct slab *slab;
	struct schedule_slot *slots; /* planner's until it is published */
	struct serving *servings;
	uint64_t lag_sum, lag_min; /* of its echoes */
	uint32_t lags, duplicates, fresh, epochs_ended;
	uint32_t substituted, zero_filled;
	uint32_t damaged; /* of the fresh ones */
	uint64_t epoch, ended_epoch;
	/* The failure of the lowest place that nothing can take. */
	int error;
	uint32_t error_place;
	int32_t error_stage;
	uint64_t error_index;
	char *why;
};

/* The walk along the schedule. `busy`: one worker has the rest to itself. */
struct planner {
	bool busy;
	bool at_end;		  /* no step is left to be planned */
	uint64_t steps;		  /* of the run */
	uint64_t fresh_end;	  /* no fresh number from there on is needed */
	uint64_t planned_fresh;	  /* fresh numbers that steps were given */
	uint64_t read_fresh;	  /* ... that were given to the reader */
	uint64_t first_step;	  /* of this handle */
	uint64_t epoch;		  /* of the newest fresh example planned */
	struct schedule schedule; /* changed with the lock while busy; read
				     with the lock or while busy */
	struct schedule_cursor cursor;
	struct example *examples;	/* of a step that is being planned */
	struct schedule_slot ahead[16]; /* a few that are to be read */
	struct example ahead_examples[16];
};

/* A thread that decodes and augments. */
struct worker {
	struct engine *engine;
	pthread_t thread;
	bool started;
	bool busy; /* lock: makes a serving */
	struct sampler *sampler;
	struct buffer *scratch; /* a decoded image that is not kept */
	uint64_t charged;	/* for the sampler */
};

/* A file that is being read. */
struct read_op {
	struct uring_op op;
	struct engine *engine;
	struct read_op *next; /* free ones; those that will begin */
	/* The function to call, with these arguments, when the lock has been
	 * released. */
	void (*begin)(struct read_op *r);
	struct uring *ring;
	int dir_fd, fd_closing;
	struct entry *entry; /* NULL: only closes its file */
	struct buffer *buffer;
	bool busy;
	int fd;
	bool unsized;	/* set when it starts: ask how large the file is */
	bool shared_fd; /* that of a shard, which stays open */
	/* An entry of a mount's tier is tried. */
	bool direct;
	unsigned tier;
	struct hash128 key;
	char path[STORE_ENTRY_PATH_MAX];
	uint64_t offset; /* of the example in its file */
	size_t got, want;
	uint64_t started_ns;
};

struct reader {
	struct uring *ring;
	struct read_op *ops, *free;
	struct read_op *queued, **queued_end; /* begin at the turn's end */
	/* How many threads are beginning some: sequentially consistent, with
	 * `ending` of the loader. */
	_Atomic uint32_t beginning;
	bool local;	  /* set once: files that the kernel answers for */
	uint32_t depth;	  /* set once: ops */
	uint32_t allowed; /* ops that may be busy: fewer without descriptors */
	uint32_t busy;	  /* ops that are */
	uint32_t reading; /* of those: with an entry */
	bool full;	  /* as many as may be, and more are to be read */
	struct auto_burst burst; /* since it was full, while it is busy */
	bool bursting;		 /* settings.measures: what is ahead is read */
	int *shard_fds;		 /* -1: not open */
	uint32_t shards_open, shards_max;
};

/* A line of the log: what schedule_change() was told. */
struct echo_change {
	uint64_t step;
	struct schedule_echo echo;
};

/* The changes of the echo factor. */
struct echoes {
	struct auto_echo measured; /* settings.measures */
	bool due;   /* a step was returned since it was looked at */
	bool ended; /* no more changes in this run */
	/* Those of the run from number `base` on; to be replayed, they are all
	 * there, else those that were made. */
	struct echo_change *log;
	uint32_t logged, room;
	uint64_t base;
	uint64_t before; /* set once: made before this handle */
	uint64_t made;	 /* before, and by this handle */
};

struct engine {
	/* Set once. */
	struct settings s;
	struct dataset *dataset;
	struct lender *lender;
	struct turn turn; /* the lock */
	bool turns;	  /* there is one */
	struct batch_source source;
	const struct slab_place *place; /* while it is opened */
	uint64_t examples;
	uint64_t outstanding_max; /* entries with servings owed, at most */
	cpu_set_t cpus;		  /* that workers may run on */
	struct worker *workers;
	uint32_t threads;
	struct mount_help *help; /* that the dataset lies on, or NULL */

	_Atomic bool ending; /* as `closing`, for whoever has no lock */

	/* All below: the lock. */
	bool closing;
	int stopped; /* why every call fails from now on */
	uint32_t running, working, callers;
	struct memory memory;
	uint64_t memory_share;	/* set once: what is not taken at open */
	uint64_t memory_alone;	/* set once: that, and workers_bytes then */
	uint64_t workers_bytes; /* charged for what workers hold */
	struct reader reader;
	struct planner planner;
	struct echoes echoes;

	struct steps *steps;
	struct entries *entries; /* the pool */
	struct worker *alone;	 /* who may take all memory, see make.c */

	struct meter *meter;
	struct error message, damage;
	struct refrain_failure failure; /* with the message */
	uint64_t waited_ns; /* in calls for the next batch that timed out */
};

/* -- entry.c: the pool -- */

/* Also to be freed after -ENOMEM. */
int entries_new(struct entries **out, uint64_t count);
void entries_free(struct entries *all, struct memory *memory);
/* How many may be added; how many are to be read that are not planned. */
uint32_t entries_unused(const struct entries *all);
uint32_t entries_ahead(const struct entries *all);
/* The entry to read next, or NULL. */
struct entry *entries_first_urgent(const struct entries *all);
struct entry *entries_first_ahead(const struct entries *all);
/* Keep an entry for later servings, at this cost in memory. */
void entries_keep(struct entries *all, uint64_t cost);
void entries_drop(struct entries *all, uint64_t cost);
uint32_t entries_kept(const struct entries *all);
uint64_t entries_kept_bytes(const struct entries *all);
uint64_t entries_bytes(uint64_t count);

struct entry *entry_find(struct engine *engine, uint64_t fresh);
/* One that is not there yet; there must be a free one. */
struct entry *entry_add(struct engine *engine, const struct schedule_slot *slot,
	const struct example *example);
/* Not planned yet: it is served as often as that now says. */
void entry_serve(struct entry *e, const struct schedule_slot *slot);
void entry_state(
	struct engine *engine, struct entry *e, enum entry_state state);
void entry_list(struct engine *engine, struct entry *e, enum entry_list on);
/* A serving is planned: queue it, or let it wait for its entry. */
void entry_plan(struct engine *engine, struct entry *e, struct serving *s);
/* The file is there, or what is kept: queue who waits. */
void entry_wake(struct engine *engine, struct entry *e);
/* One serving is over. */
void entry_served(struct engine *engine, struct entry *e, uint32_t echo);
void entry_drop_encoded(struct engine *engine, struct entry *e);
void entry_drop_kept(struct engine *engine, struct entry *e);
/* Move the entry to the front of the read queue. */
void entry_read_first(struct engine *engine, struct entry *e);
/* Nobody works on it: to be read if it is planned, else put aside. */
void entry_settle(struct engine *engine, struct entry *e);
/* Drop what is not needed soon, one entry a call. False: there is none. */
bool entries_reclaim(struct engine *engine);
/* Drop what is read but not being worked on, whatever it is. */
bool entries_reclaim_queued(struct engine *engine);

/* -- damage.c -- */

/*
 * The bytes read for the entry cannot be used: apply the policy. `stage` and
 * `what` are for the message.
 */
void entry_fail(struct engine *engine, struct entry *e, int error,
	const char *stage, const char *what);

/* -- planner.c -- */

int planner_init(struct engine *engine, struct error *err);
void planner_release(struct engine *engine);
/* Is there something to be planned? */
bool planner_wants(const struct engine *engine);
/* Plan a little. Releases the lock meanwhile. */
void planner_run(struct engine *engine);

/* The ring of steps, batches_ahead of them: planner.c, too. */
/* Numbers that are in it; the first is that of the next batch. */
uint64_t steps_first(const struct steps *s);
uint64_t steps_end(const struct steps *s);
struct step *steps_at(const struct steps *s, uint64_t number);
struct step *steps_oldest(const struct steps *s); /* or NULL */
/* Servings that are queued; that are planned and not done. */
uint32_t steps_ready(const struct steps *s);
uint32_t steps_unfinished(const struct steps *s);
void steps_plan(struct steps *s);
void steps_done(struct steps *s);
void steps_queue(struct steps *s, struct serving *serving);
void steps_unqueue(struct steps *s, struct serving *serving);
/* The oldest that is queued, or NULL. */
struct serving *steps_take(struct steps *s);
/* The oldest step is with the caller. */
void steps_return(struct steps *s);

/* -- echo.c: the echo factor changes -- */

/* After planner_init(): what the configuration and the state say. */
int echo_init(struct engine *engine, struct error *err);
void echo_release(struct engine *engine);
/* The planner, busy: change the factor, if it is to be changed. */
void echo_plan(struct engine *engine);
/* Why the factor is what it is; and what a run needs, see refrain_stats. */
const char *echo_reason(const struct engine *engine, uint64_t *needs_fresh);
/* A batch was returned and metered. */
void echo_returned(struct engine *engine);

/* -- reader.c: one file; reader_next.c: which; reader_life.c -- */

int reader_init(struct engine *engine, struct error *err);
/* Start what may be read. */
void reader_pump(struct engine *engine);
/* Work that begins when the lock has been released: taken with the lock held,
 * then begun. */
void reader_queue(struct engine *engine, struct read_op *r,
	void (*begin)(struct read_op *r));
struct read_op *reader_take_queued(struct engine *engine);
void reader_begin(struct read_op *first);
/* Read the rest of the open file. */
void reader_read(struct engine *engine, struct read_op *r);
/* The ends of direct.c: read the file itself after all; the content is in the
 * buffer, `got` bytes; or closing has begun. */
void reader_open(struct engine *engine, struct read_op *r);
void reader_done(struct engine *engine, struct read_op *r);
void reader_cancel(struct engine *engine, struct read_op *r);
/* End all reads: how many were left behind. Lock not held. */
uint32_t reader_stop(struct engine *engine, uint64_t wait_ns);
void reader_release(struct engine *engine);
/* CPU time of its threads so far. */
uint64_t reader_cpu_ns(const struct engine *engine);

/* -- direct.c: entries of a mount's tiers -- */

/* Bytes for the file of the entry that is to be tried first, or 0. */
size_t direct_bytes(const struct engine *engine, const struct entry *e);
/* Begin with it, if there is one; else false. */
bool direct_start(struct engine *engine, struct read_op *r);

/* -- room.c -- */

/* How many examples may be read before they are planned. */
uint32_t room_ahead(const struct engine *engine);
/* Would buffers of so many bytes fit if all were dropped that can be? */
bool room_alone(const struct engine *engine, uint64_t bytes);

/* -- worker.c, make.c -- */

int workers_init(struct engine *engine, struct error *err);
int workers_start(struct engine *engine, struct error *err);
/* After `closing` was set: false if one does not end in time. */
bool workers_stop(struct engine *engine, uint64_t until_ns);
void workers_release(struct engine *engine);
/* CPU time of its threads so far. */
uint64_t workers_cpu_ns(const struct engine *engine);
/*
 * Make a serving, whose entry is as the state says: KEPT, and counted among
 * its users, or WORKING for this worker. Lock held before and after, not
 * meanwhile. False: the entry failed or was put back, the serving waits on.
 */
bool serving_make(struct worker *w, struct serving *s, enum entry_state state);

/* -- engine.c -- */

/* The meter counts the time until now. */
void engine_tick(struct engine *engine);
/* Implements refrain_close(). */
int engine_close(struct engine *engine);

/* -- next.c: what is ready, and for whom -- */

/* Implements refrain_next(). */
int engine_next(struct engine *engine, struct lent_batch **out, int timeout_ms);

/* Would refrain_next() return at once? */
bool loader_is_ready(const struct engine *engine);

/* -- state.c -- */

/* Begin at the state of the configuration, if there is one. */
int state_restore(struct engine *engine, const struct schedule_config *config,
	uint64_t *step, struct error *err);

/* -- watch.c -- */

/* Describe what the oldest batch waits for, also in engine->failure. */
void watch_describe(
	struct engine *engine, struct error *err, int rc, uint64_t waited_ns);

#endif

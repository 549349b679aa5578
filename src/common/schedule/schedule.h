/* SPDX-License-Identifier: MIT */
/*
 * The echo schedule assigns an example and an augmentation seed to each slot of
 * each batch. It is a pure function of the configuration, the log of echo
 * changes and the position, without threads, I/O or allocation. `struct
 * schedule` holds no pointer: a copy is a snapshot. One thread at a time may
 * change one; any number may read it meanwhile if nobody does.
 *
 * Words. A *step* is one batch. *Fresh number* f: the f-th example that this
 * rank decodes since its numbering began (at 0, and anew after a change of
 * world). *Global number* g: the same over all ranks and the whole run; its
 * epoch is g / examples. *Echo number* k: 0 for the first (fresh) serving. A
 * *unit* is an example, or with SCHEDULE_BATCH a whole batch.
 *
 * doc/schedule.md lists the guarantees and their exceptions; lane.c gives the
 * proofs.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define SCHEDULE_ECHO_MAX 64	      /* the highest echo factor */
#define SCHEDULE_DENOMINATOR_MAX 1000 /* of an echo factor */
#define SCHEDULE_BATCH_MAX (1U << 24)
#define SCHEDULE_LAG_MAX (1U << 12)
#define SCHEDULE_WINDOW_MAX ((uint64_t)UINT32_MAX)
#define SCHEDULE_GLOBAL_MAX ((uint64_t)1 << 56) /* examples x epochs */
#define SCHEDULE_SEGMENTS 8			/* of the log, that are kept */
#define SCHEDULE_STATE_BYTES 144		/* a saved position, at most */

/* The echo factor p / q >= 1, in lowest terms. */
struct schedule_echo {
	uint32_t p, q;
};

enum schedule_point {
	SCHEDULE_BEFORE, /* each serving has its own augmentation seed */
	SCHEDULE_AFTER,	 /* same slots; all servings share that of echo 0 */
	SCHEDULE_BATCH,	 /* whole batches are served again, identical */
};

enum schedule_order {
	SCHEDULE_SHUFFLE,  /* a new permutation of the dataset each epoch */
	SCHEDULE_IN_ORDER, /* by index: evaluation */
	SCHEDULE_NEARBY,   /* by index, shuffled inside blocks of `nearby` */
};

/* How to handle the remainder when the run's examples do not divide by the
 * ranks. */
enum schedule_share {
	SCHEDULE_UNEVEN, /* some ranks have one fresh example more */
	SCHEDULE_PAD,	 /* the others get one again, marked `padded` */
	SCHEDULE_EQUAL,	 /* nobody gets them: `fresh_dropped` */
};

struct schedule_config {
	uint64_t examples; /* of the dataset, >= 1 */
	uint64_t epochs;   /* 0: without end */
	uint64_t seed;
	uint32_t batch;		   /* examples a step, >= 1 */
	uint32_t rank, world;	   /* world 0: 1 */
	uint32_t lag;		   /* least steps between servings; 0: 1 */
	uint64_t window;	   /* examples; 0: schedule_default_window() */
	struct schedule_echo echo; /* {0, 0}: 1 */
	struct schedule_echo echo_max; /* for changes; {0, 0}: as echo */
	enum schedule_point point;
	enum schedule_order order;
	enum schedule_share share;
	uint64_t nearby;	 /* SCHEDULE_NEARBY: examples of a block */
	bool drop_last;		 /* a short last batch is not delivered */
	bool allow_small_window; /* duplicates may occur: count them */
};

/* A stretch of fresh units with one echo factor. Private. */
struct schedule_segment {
	uint64_t start; /* its first unit = its first tick */
	uint64_t slot;	/* slots before that tick */
	uint64_t block; /* units that an echo is shuffled among */
	uint32_t p, q;
	uint32_t whole, part; /* p / q and p % q */
	uint32_t lanes;	      /* p / q rounded up */
};

/* Private, but for copying. */
struct schedule {
	struct schedule_config c; /* with the defaults filled in */
	uint64_t total;		  /* global numbers of the run end here */
	uint64_t base;		  /* ... and began here for this world */
	uint64_t step_base;	  /* the step where that was */
	uint64_t fresh;		  /* examples of this rank */
	uint64_t units;		  /* of this rank */
	uint64_t units_common;	  /* the first so many every rank has, whole */
	uint64_t spread; /* ticks from a unit's first to last serving */
	bool forgotten;	 /* segments before these: positions before
			  * segment[1] cannot be answered */
	uint32_t unit_examples, slots_a_step;
	uint32_t segments;
	struct schedule_segment segment[SCHEDULE_SEGMENTS];
};

/* A place in a batch. */
struct schedule_slot {
	uint64_t index; /* in the dataset */
	uint64_t fresh; /* f: names the pool entry */
	uint64_t epoch; /* of the decoded example, not of the step */
	uint64_t augment_seed;
	uint32_t echo;	   /* k */
	uint32_t servings; /* of this f in all */
	bool last;	   /* k == servings - 1: the pool entry is done with */
	bool padded;	   /* past the run: a repetition that evens ranks out */
};

/* The nearest p / q with q <= 64: 2.333 is 7/3. */
struct schedule_echo schedule_echo_nearest(double echo);

/* Parse "2", "2.5" or "5/2" to the nearest such factor. -EINVAL. */
int schedule_echo_parse(
	const char *text, struct schedule_echo *echo, struct error *err);

/* Write "2.5", or "7/3" if the decimal fraction is not exact; returns buf. */
#define ECHO_TEXT 24
const char *schedule_echo_text(struct schedule_echo echo, char buf[ECHO_TEXT]);

/*
 * The smallest window, in examples, for which two servings of one decoded
 * example are at least `lag` steps apart, hence never in one batch.
 */
uint64_t schedule_min_window(uint32_t batch, struct schedule_echo echo,
	uint32_t lag, enum schedule_point point);

/* max(16 batch, 1024, the smallest). */
uint64_t schedule_default_window(uint32_t batch, struct schedule_echo echo,
	uint32_t lag, enum schedule_point point);

/*
 * Returns -EINVAL for an invalid configuration or a window below the smallest;
 * the message then has the required size.
 */
int schedule_init(struct schedule *s, const struct schedule_config *config,
	struct error *err);

/* The configuration, with the defaults filled in. */
const struct schedule_config *schedule_settings(const struct schedule *s);
/* The number of fresh examples of this rank. */
uint64_t schedule_fresh_count(const struct schedule *s);
/* Fresh examples from the first to the last serving of one. */
uint64_t schedule_spread(const struct schedule *s);

/* --- the stream --- */

/* A reader of the stream. One thread uses it. It stays valid when an echo
 * change is appended at its step or later. */
struct schedule_cursor {
	uint64_t step, tick;
	uint32_t offset; /* slots of the tick that are done */
};

/* Move the cursor to before batch `step`; O(log). -ERANGE if that is before
 * what is kept (see schedule_change()) or more than one past the last step. */
int schedule_seek(const struct schedule *s, struct schedule_cursor *cursor,
	uint64_t step);

/*
 * The next batch: fills `slots` (room for config.batch) and returns how many
 * there are: 0 at the end of the run, fewer than a batch only just before it.
 */
uint32_t schedule_next(const struct schedule *s, struct schedule_cursor *cursor,
	struct schedule_slot *slots);

/* --- fresh examples in order: reading, decoding and the prefetch plan --- */

/*
 * Find the slot of the first serving of f, as in schedule_next(), and
 * `need_by`, the step whose batch has that serving. -ERANGE if f is above the
 * last fresh example. With drop_last, need_by may be the end of the run: no
 * batch has f.
 */
int schedule_fresh(const struct schedule *s, uint64_t f,
	struct schedule_slot *slot, uint64_t *need_by);

/* The least f that no batch before `step` has: where a plan begins. */
uint64_t schedule_fresh_before(const struct schedule *s, uint64_t step);

/* The augmentation seed of serving k of the example in `slot`. */
uint64_t schedule_augment_seed(
	const struct schedule *s, const struct schedule_slot *slot, uint32_t k);

/* The step that has serving k < servings of f; -ERANGE if none. */
int schedule_serving_step(
	const struct schedule *s, uint64_t f, uint32_t k, uint64_t *step);

/* The number of steps of the run; UINT64_MAX without end. */
uint64_t schedule_steps(const struct schedule *s);

/*
 * The number of steps after which `epoch` is over: one more than the step that
 * has this rank's last fresh example of the epoch, or of an earlier epoch if
 * the rank has none of this one.
 */
uint64_t schedule_epoch_end(const struct schedule *s, uint64_t epoch);

/* The same for the rank that has the most examples of the epoch: with
 * SCHEDULE_PAD a number that all ranks agree on. */
uint64_t schedule_epoch_end_all(const struct schedule *s, uint64_t epoch);

/* --- the echo factor changes --- */

/*
 * Change the factor to echo.p / echo.q, from the first example decoded at or
 * after `step`, but not before one spread (schedule_facts) of examples after
 * the last change began. `step` must not be before anything that was already
 * decoded or served by this schedule. Earlier servings do not change, and
 * echoes already due are still served. The log of (step, p, q), appended in
 * order, to a schedule of the same configuration gives the same stream.
 *
 * -EINVAL above echo_max; -EBUSY while the last change has not begun by `step`;
 * -ERANGE if less than a spread of fresh units would be left for it. Only the
 * last SCHEDULE_SEGMENTS stretches of the log are kept, so positions more than
 * SCHEDULE_SEGMENTS - 2 changes ago can no longer be sought.
 */
int schedule_change(
	struct schedule *s, uint64_t step, struct schedule_echo echo);

/* The first fresh number with the factor of the newest change; 0 if there was
 * no change. schedule_fresh() of it returns, as need_by, the step where the
 * change begins. */
uint64_t schedule_change_begins(const struct schedule *s);

/* The factor for units that are decoded in or after the batch of `step`. */
struct schedule_echo schedule_echo_at(const struct schedule *s, uint64_t step);

/* --- saving and restoring --- */

struct schedule_restored {
	uint64_t step; /* the next batch */
	/* Servings that the old ranks together still owed, if the schedule of
	 * each was that of the state. A short last batch of SCHEDULE_BATCH
	 * counts as a whole one. */
	uint64_t echoes_dropped;
};

/*
 * Save the position before batch `step`: returns the size written to `out`,
 * the same bytes on every rank. Any rank's state restores all ranks, if all
 * made the same changes. 0 if `step` cannot be sought, or if more than two
 * changes begin after it.
 */
size_t schedule_save(const struct schedule *s, uint64_t step,
	uint8_t out[SCHEDULE_STATE_BYTES]);

/*
 * Like schedule_init(), at a saved position. With the same world the stream
 * continues unchanged. With another one (then batch, window and lag may differ,
 * too) every example of the run that no rank had fresh is fresh once, and
 * echoes still due are dropped. Returns -EBADMSG if it is not a saved state,
 * -EINVAL if it was saved with other options; the message names them.
 */
int schedule_restore(struct schedule *s, const struct schedule_config *config,
	const uint8_t *state, size_t size, struct schedule_restored *restored,
	struct error *err);

/* --- figures --- */

/* Ramp, drain and pool are exact if there is one echo factor and the run has
 * more fresh units than lie between the servings of one unit. After changes
 * they are those of the newest factor. */
struct schedule_facts {
	uint64_t window;	/* examples */
	uint64_t fresh;		/* examples of this rank from here to the end */
	uint64_t fresh_dropped; /* of this rank: never in a batch */
	uint64_t slots_dropped; /* of a short last batch; of its servings */
	uint64_t steps;		/* the run's end: one more than the last step */
	uint64_t ramp_steps;	/* until each batch has its share of fresh */
	uint64_t drain_steps;	/* after the last fresh example, without any */
	uint64_t pool_max;	/* examples with servings owed, at most */
	/*
	 * Servings of one example are at least `lag` steps apart, but for
	 * pairs on both sides of (or in) exception_step: UINT64_MAX if there
	 * are none. False for a small window that was allowed, and for a run
	 * of fewer fresh examples than 2 batch x lag: nothing is promised.
	 */
	bool apart;
	uint64_t exception_step;
};

void schedule_facts(const struct schedule *s, struct schedule_facts *facts);

#endif

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
#define SCHEDULE_DENOMINATOR_MAX 1000 /* maximum q of an echo factor */
#define SCHEDULE_BATCH_MAX (1U << 24)
#define SCHEDULE_LAG_MAX (1U << 12)
#define SCHEDULE_WINDOW_MAX ((uint64_t)UINT32_MAX)
#define SCHEDULE_GLOBAL_MAX ((uint64_t)1 << 56) /* examples x epochs */
#define SCHEDULE_SEGMENTS 8	 /* segments of the log that are kept */
#define SCHEDULE_STATE_BYTES 144 /* maximum size of a saved position */

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
	uint64_t examples; /* of the dataset, >= 1; see also open_end */
	uint64_t epochs;   /* 0: without end */
	uint64_t seed;
	uint32_t batch;	      /* examples in a step, >= 1 */
	uint32_t rank, world; /* world 0 stands for 1 */
	uint32_t lag;	 /* minimum steps between servings; 0 stands for 1 */
	uint64_t window; /* examples; 0: schedule_default_window() */
	struct schedule_echo echo;     /* {0, 0} stands for 1 */
	struct schedule_echo echo_max; /* limit for changes; {0, 0}: echo */
	enum schedule_point point;
	enum schedule_order order;
	enum schedule_share share;
	uint64_t nearby;	 /* SCHEDULE_NEARBY: examples in a block */
	bool drop_last;		 /* a short last batch is not delivered */
	bool allow_small_window; /* duplicates may occur: count them */
	/*
	 * The number of examples is not known yet: `examples` is 0, there is
	 * one epoch, in order, and schedule_end() ends it. A change may begin
	 * at any example, also less than a spread before the end. Not with
	 * SCHEDULE_BATCH.
	 */
	bool open_end;
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

/* Private. Callers may only copy it. */
struct schedule {
	struct schedule_config c; /* with the defaults filled in */
	uint64_t total;		  /* global numbers of the run end here */
	uint64_t base;		  /* global number at which this world began */
	uint64_t step_base;	  /* step at which this world began */
	uint64_t fresh;		  /* examples of this rank */
	uint64_t units;		  /* units of this rank */
	uint64_t units_common; /* the first ones, which every rank has whole */
	uint64_t spread;       /* ticks from a unit's first to last serving */
	/* older segments were dropped: positions before segment[1] are unknown
	 */
	bool forgotten;
	uint32_t unit_examples, slots_a_step;
	uint32_t segments;
	struct schedule_segment segment[SCHEDULE_SEGMENTS];
};

/* A place in a batch. */
struct schedule_slot {
	uint64_t index; /* in the dataset */
	uint64_t fresh; /* f, the key of the entry in the pool */
	uint64_t epoch; /* of the decoded example, not of the step */
	uint64_t augment_seed;
	uint32_t echo;	   /* k */
	uint32_t servings; /* number of servings of this f */
	bool last; /* k == servings - 1: the pool entry is needed no more */
	/* a repetition past the run, which makes ranks equally long */
	bool padded;
};

/* The nearest p / q with q <= 64: 2.333 gives 7/3. */
struct schedule_echo schedule_echo_nearest(double echo);

/* Parse "2", "2.5" or "5/2", and round to the nearest factor with q <= 64.
 * Returns 0 or -EINVAL. */
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

/* The default window: max(16 batch, 1024, schedule_min_window()). */
uint64_t schedule_default_window(uint32_t batch, struct schedule_echo echo,
	uint32_t lag, enum schedule_point point);

/*
 * Returns 0, or -EINVAL for an invalid configuration or a window that is too
 * small. The message then gives the required window.
 */
int schedule_init(struct schedule *s, const struct schedule_config *config,
	struct error *err);

/* The configuration, with the defaults filled in. */
const struct schedule_config *schedule_settings(const struct schedule *s);
/* The number of fresh examples of this rank. */
uint64_t schedule_fresh_count(const struct schedule *s);
/* The number of fresh examples from the first to the last serving of an
 * example. */
uint64_t schedule_spread(const struct schedule *s);

/* --- the stream --- */

/* A position in the stream. One thread uses it. It stays valid when an echo
 * change is appended at its step or later. */
struct schedule_cursor {
	uint64_t step, tick;
	uint32_t offset; /* slots of the tick that were returned */
};

/* Move the cursor to the position before batch `step`; O(log). Returns -ERANGE
 * if that position is no longer kept (see schedule_change()) or more than one
 * past the last step. */
int schedule_seek(const struct schedule *s, struct schedule_cursor *cursor,
	uint64_t step);

/*
 * Get the next batch. Writes `slots` (room for config.batch) and returns their
 * number: 0 at the end of the run, less than a batch only in the last batch.
 */
uint32_t schedule_next(const struct schedule *s, struct schedule_cursor *cursor,
	struct schedule_slot *slots);

/*
 * One slot at a time, for a reader that does not need whole batches. Fill in
 * the slot at the cursor, and return 1, or 0 at the end of the run. The slot
 * stays there until schedule_advance(). Not with SCHEDULE_BATCH.
 */
int schedule_peek(const struct schedule *s, struct schedule_cursor *cursor,
	struct schedule_slot *slot);

/* Go past the slot that schedule_peek() has found. Its step may be odd in the
 * middle of a batch: `step` counts the batches that are complete. */
void schedule_advance(const struct schedule *s, struct schedule_cursor *cursor);

/* Is a serving of f at the cursor or later? */
bool schedule_is_owed(const struct schedule *s,
	const struct schedule_cursor *cursor, uint64_t f);

/*
 * End a run whose end was open: this rank has `fresh` examples, of which none
 * after the cursor's position has been served. From there on the stream is that
 * of a run of fresh x world examples. A change that has not begun by then is
 * dropped. Returns -EINVAL if the end is known already.
 */
int schedule_end(struct schedule *s, uint64_t fresh);

/* Is the number of examples known? */
bool schedule_has_end(const struct schedule *s);

/* --- fresh examples in order: reading, decoding and the prefetch plan --- */

/*
 * Find the slot of the first serving of f, as in schedule_next(), and
 * `need_by`, the step whose batch has that serving. -ERANGE if f is above the
 * last fresh example. With drop_last, need_by may be the end of the run: no
 * batch has f.
 */
int schedule_fresh(const struct schedule *s, uint64_t f,
	struct schedule_slot *slot, uint64_t *need_by);

/* The first fresh number that is in no batch before `step`. A plan begins
 * there. */
uint64_t schedule_fresh_before(const struct schedule *s, uint64_t step);

/* The augmentation seed of serving k of the example in `slot`. */
uint64_t schedule_augment_seed(
	const struct schedule *s, const struct schedule_slot *slot, uint32_t k);

/* The step of serving k of f; k is below the number of servings. Returns
 * -ERANGE if there is no such step. */
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

/* Like schedule_epoch_end(), for the rank that has the most examples of the
 * epoch. With SCHEDULE_PAD all ranks agree on this number. */
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
 * -ERANGE if less than a spread of fresh units would be left for it, or, with
 * an open end, none. Only the
 * last SCHEDULE_SEGMENTS stretches of the log are kept, so positions more than
 * SCHEDULE_SEGMENTS - 2 changes ago can no longer be sought.
 */
int schedule_change(
	struct schedule *s, uint64_t step, struct schedule_echo echo);

/* The first fresh number with the factor of the newest change; 0 if there was
 * no change. For that number, schedule_fresh() sets need_by to the step where
 * the change begins. */
uint64_t schedule_change_begins(const struct schedule *s);

/* The factor for units that are decoded in or after the batch of `step`. */
struct schedule_echo schedule_echo_at(const struct schedule *s, uint64_t step);

/* --- saving and restoring --- */

struct schedule_restored {
	uint64_t step; /* the next batch */
	/* Servings that the old ranks together had not returned yet, if the
	 * schedule of each was that of the state. A short last batch of
	 * SCHEDULE_BATCH counts as a whole one. */
	uint64_t echoes_dropped;
};

/*
 * Save the position before batch `step`. Returns the size written to `out`, or
 * 0 if `step` cannot be sought or more than two changes begin after it. All
 * ranks write the same bytes. If all ranks made the same changes, the state of
 * any rank restores every rank.
 */
size_t schedule_save(const struct schedule *s, uint64_t step,
	uint8_t out[SCHEDULE_STATE_BYTES]);

/*
 * Like schedule_init(), but begins at a saved position. With the same world the
 * stream continues unchanged. With another world (then batch, window and lag
 * may differ, too) every example of the run that no rank has served fresh is
 * fresh once, and echoes that are still due are dropped. Returns -EBADMSG for
 * bytes that are not a saved state, -EINVAL for a state that was saved with
 * other options; the message names them.
 */
int schedule_restore(struct schedule *s, const struct schedule_config *config,
	const uint8_t *state, size_t size, struct schedule_restored *restored,
	struct error *err);

/* --- figures --- */

/* Ramp, drain and pool are exact if there is one echo factor and the run has
 * more fresh units than lie between the servings of one unit. After changes
 * they hold for the newest factor. */
struct schedule_facts {
	uint64_t window;	/* examples */
	uint64_t fresh;		/* examples of this rank from here to the end */
	uint64_t fresh_dropped; /* examples of this rank that are in no batch */
	/* slots of a short last batch that is not delivered */
	uint64_t slots_dropped;
	uint64_t steps; /* the number of steps of the run */
	/* steps until each batch has its share of fresh examples */
	uint64_t ramp_steps;
	uint64_t drain_steps; /* steps after the last fresh example */
	uint64_t pool_max; /* maximum number of examples with servings left */
	/*
	 * The servings of one example are at least `lag` steps apart, except
	 * those on both sides of exception_step, or in it; UINT64_MAX: no
	 * exception. False if a small window was allowed, or if the run has
	 * fewer fresh examples than 2 batch x lag: then no distance is
	 * promised.
	 */
	bool apart;
	uint64_t exception_step;
};

void schedule_facts(const struct schedule *s, struct schedule_facts *facts);

#endif

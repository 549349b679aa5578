/* SPDX-License-Identifier: MIT */
/*
 * The echo schedule assigns an example and an augmentation seed to each slot of
 * each batch. It is a pure function of the configuration, the log of echo
 * changes and the position, without threads, I/O or allocation. A copy of
 * `struct schedule` is a snapshot: its pointers are to the mix and the buckets,
 * which never change and must outlive all copies. One thread at a time may
 * change a schedule; any number may read it while no thread changes it.
 *
 * Words. A *step* is one batch. *Fresh number* f: the f-th example that this
 * rank decodes since its numbering began; the numbering begins at 0, and again
 * after a change of world. *Global number* g: the same over all ranks and the
 * whole run; its epoch is g / epoch_examples. *Pass*: a range of global numbers
 * in which each example of the dataset, or of the subset, comes once; a pass is
 * an epoch unless epoch_examples is set. *Echo number* k: 0 for the first
 * (fresh) serving of an example. A *unit* is an example, or with SCHEDULE_BATCH
 * a whole batch.
 *
 * doc/schedule.md lists the guarantees and their exceptions; lane.c contains
 * the proofs.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/schedule/bucket.h"
#include "common/schedule/mix.h"

#define SCHEDULE_ECHO_MAX 64	      /* the highest echo factor */
#define SCHEDULE_DENOMINATOR_MAX 1000 /* maximum q of an echo factor */
#define SCHEDULE_BATCH_MAX (1U << 24)
#define SCHEDULE_LAG_MAX (1U << 12)
#define SCHEDULE_WINDOW_MAX ((uint64_t)UINT32_MAX)
#define SCHEDULE_GLOBAL_MAX ((uint64_t)1 << 56) /* examples of a run */
#define SCHEDULE_SEGMENTS 8 /* number of segments of the log that are kept */
#define SCHEDULE_STATE_BYTES 160 /* maximum size of a saved position */

/* The echo factor p / q >= 1, in lowest terms. */
struct schedule_echo {
	uint32_t p, q;
};

enum schedule_point {
	SCHEDULE_BEFORE, /* each serving has its own augmentation seed */
	/* like SCHEDULE_BEFORE, but all servings have the seed of echo 0 */
	SCHEDULE_AFTER,
	SCHEDULE_BATCH, /* whole batches are served again unchanged */
};

enum schedule_order {
	SCHEDULE_SHUFFLE,  /* a new permutation in each pass */
	SCHEDULE_IN_ORDER, /* by index, for evaluation */
	/* by index, but shuffled in blocks of `nearby` examples */
	SCHEDULE_NEARBY,
};

/* How to handle the remainder if the number of examples is not a multiple of
 * the number of ranks. */
enum schedule_share {
	SCHEDULE_UNEVEN, /* some ranks have one fresh example more */
	SCHEDULE_PAD,	 /* the others serve one again, marked `padded` */
	SCHEDULE_EQUAL,	 /* no rank serves the remainder; see `fresh_dropped` */
};

struct schedule_config {
	/* size of the dataset, at least 1; see also open_end */
	uint64_t examples;
	uint64_t epochs; /* 0: the run has no end */
	/* Number of global numbers in an epoch. 0 stands for a whole pass or,
	 * with a mix, for the number of examples of all its parts. */
	uint64_t epoch_examples;
	/* Serve only this number of examples, the first ones of a permutation
	 * that subset_seed determines; 0: all. */
	uint64_t subset, subset_seed;
	/* NULL: no mix; not allowed with a subset */
	const struct part_mix *mix;
	/* NULL: no buckets. Allowed for SCHEDULE_SHUFFLE without a mix, and for
	 * an echo factor of 1 or SCHEDULE_BATCH. The group of the buckets must
	 * be batch x world. */
	const struct buckets *buckets;
	uint64_t seed;
	uint32_t batch;	      /* examples in a step, >= 1 */
	uint32_t rank, world; /* world 0 stands for 1 */
	/* minimum number of steps between servings; 0 stands for 1 */
	uint32_t lag;
	uint64_t window; /* in examples; 0: schedule_default_window() */
	struct schedule_echo echo; /* {0, 0} stands for 1 */
	/* limit for changes; {0, 0} stands for `echo` */
	struct schedule_echo echo_max;
	enum schedule_point point;
	enum schedule_order order;
	enum schedule_share share;
	uint64_t nearby; /* for SCHEDULE_NEARBY: examples in a block */
	bool drop_last;	 /* a short last batch is not delivered */
	/* duplicates in a batch are allowed, and counted */
	bool allow_small_window;
	/* The number of examples is not known yet: `examples` is 0, there is
	 * one epoch, in order, and schedule_end() ends it. A change may begin
	 * at any example, even less than a spread before the end. Not with
	 * SCHEDULE_BATCH. */
	bool open_end;
};

/* A sequence of fresh units with one echo factor. All members are private. */
struct schedule_segment {
	uint64_t start; /* its first unit, which is also its first tick */
	uint64_t slot;	/* number of slots before that tick */
	uint64_t block; /* number of units among which an echo is shuffled */
	uint32_t p, q;
	uint32_t whole, part; /* p / q and p % q */
	uint32_t lanes;	      /* p / q rounded up */
};

/* All members are private. Callers may only copy the struct. */
struct schedule {
	/* the configuration, with the defaults filled in */
	struct schedule_config c;
	uint64_t total;	    /* all global numbers of the run are below this */
	uint64_t base;	    /* global number at which this world began */
	uint64_t step_base; /* step at which this world began */
	uint64_t fresh;	    /* number of examples of this rank */
	uint64_t units;	    /* number of units of this rank */
	/* the number of units that every rank has whole */
	uint64_t units_common;
	/* number of ticks from a unit's first to its last serving */
	uint64_t spread;
	/* older segments were dropped, so positions before segment[1] are
	 * unknown */
	bool forgotten;
	uint32_t unit_examples, slots_a_step;
	uint32_t segments;
	struct schedule_segment segment[SCHEDULE_SEGMENTS];
};

/* One serving in a batch. */
struct schedule_slot {
	uint64_t index; /* index of the example in the dataset */
	uint64_t fresh; /* f, which finds the example in the pool */
	uint64_t epoch; /* epoch of the example, not of the step */
	/* pass of the example; with a mix, the pass of its part */
	uint64_t pass;
	uint32_t part; /* number of the part of the mix; 0 without a mix */
	uint64_t augment_seed;
	uint32_t echo;	   /* k: how often the example was served before */
	uint32_t servings; /* number of servings of this example */
	/* k == servings - 1: the pool need not keep the example any more */
	bool last;
	/* the example repeats one, so that all ranks have equally many */
	bool padded;
};

/* Returns the nearest p / q with q <= 64. For example, 2.333 gives 7/3. */
struct schedule_echo schedule_echo_nearest(double echo);

/* Parse "2", "2.5" or "5/2", and round to the nearest factor with q <= 64.
 * Returns 0 or -EINVAL. */
int schedule_echo_parse(
	const char *text, struct schedule_echo *echo, struct error *err);

/* Write "2.5", or "7/3" if the decimal fraction is not exact. Returns buf. */
#define ECHO_TEXT 24
const char *schedule_echo_text(struct schedule_echo echo, char buf[ECHO_TEXT]);

/* Returns the smallest window, in examples, with which two servings of one
 * example are at least `lag` steps apart, and so never in one batch. */
uint64_t schedule_min_window(uint32_t batch, struct schedule_echo echo,
	uint32_t lag, enum schedule_point point);

/* Returns the default window: max(16 batch, 1024, schedule_min_window()). */
uint64_t schedule_default_window(uint32_t batch, struct schedule_echo echo,
	uint32_t lag, enum schedule_point point);

/* Initialise a schedule. Returns 0, or -EINVAL for an invalid configuration or
 * a window that is too small; in the second case the message names the required
 * window. */
int schedule_init(struct schedule *s, const struct schedule_config *config,
	struct error *err);

/* Returns the configuration, with the defaults filled in. */
const struct schedule_config *schedule_settings(const struct schedule *s);
/* Returns the number of fresh examples of this rank. */
uint64_t schedule_fresh_count(const struct schedule *s);
/* Returns the number of fresh examples from the first to the last serving of an
 * example. */
uint64_t schedule_spread(const struct schedule *s);

/* --- the stream --- */

/* A position in the stream, which one thread uses. If the echo factor changes
 * at the position's step or later, the position stays valid. */
struct schedule_cursor {
	uint64_t step, tick;
	uint32_t offset; /* number of slots of the tick that were returned */
};

/* Move the cursor to the position before batch `step`; O(log). Returns 0; or
 * -ERANGE if the segment of that position was dropped (see schedule_change()),
 * or if the position is more than one after the last step. */
int schedule_seek(const struct schedule *s, struct schedule_cursor *cursor,
	uint64_t step);

/* Get the next batch. Writes its slots to `slots`, which has room for
 * config.batch, and returns their number: 0 at the end of the run, less than
 * config.batch only in the last batch. */
uint32_t schedule_next(const struct schedule *s, struct schedule_cursor *cursor,
	struct schedule_slot *slots);

/* Get the slot at the cursor, for a reader that does not need whole batches.
 * Returns 1, or 0 at the end of the run. The cursor moves only by
 * schedule_advance(). Not with SCHEDULE_BATCH. */
int schedule_peek(const struct schedule *s, struct schedule_cursor *cursor,
	struct schedule_slot *slot);

/* Move the cursor past the slot that schedule_peek() has returned. In the
 * middle of a batch, cursor->step counts only complete batches. */
void schedule_advance(const struct schedule *s, struct schedule_cursor *cursor);

/* Does a serving of example f follow at the cursor or later? */
bool schedule_is_owed(const struct schedule *s,
	const struct schedule_cursor *cursor, uint64_t f);

/*
 * End a run whose end was open: this rank has `fresh` examples. None of the
 * examples after the cursor's position may have been served. From that position
 * on the stream is that of a run of fresh x world examples. A change that has
 * not begun by then is dropped. Returns 0, or -EINVAL if the end is known
 * already.
 */
int schedule_end(struct schedule *s, uint64_t fresh);

/* Is the number of examples known? */
bool schedule_has_end(const struct schedule *s);

/* --- fresh examples in order: reading, decoding and the prefetch plan --- */

/* Find the slot of the first serving of f, as schedule_next() returns it, and
 * `need_by`, the step whose batch contains that serving. Returns 0, or -ERANGE
 * if f is above the last fresh example. With drop_last, need_by may be the end
 * of the run, if no batch contains f. */
int schedule_fresh(const struct schedule *s, uint64_t f,
	struct schedule_slot *slot, uint64_t *need_by);

/* Returns the first fresh number that is in no batch before `step`. A plan
 * begins with this number. */
uint64_t schedule_fresh_before(const struct schedule *s, uint64_t step);

/* Returns the augmentation seed of serving k of the example in `slot`. */
uint64_t schedule_augment_seed(
	const struct schedule *s, const struct schedule_slot *slot, uint32_t k);

/* Returns an example to be served in place of the one in `slot`: one of the
 * same part of the mix, or of the subset, or else of the dataset. `number` may
 * be any number. */
uint64_t schedule_substitute(const struct schedule *s,
	const struct schedule_slot *slot, uint64_t number);

/* Find the step of serving k of f; k is less than the number of servings.
 * Returns 0, or -ERANGE if there is no such step. */
int schedule_serving_step(
	const struct schedule *s, uint64_t f, uint32_t k, uint64_t *step);

/* Returns the number of steps of the run; UINT64_MAX if it has no end. */
uint64_t schedule_steps(const struct schedule *s);

/* Returns the number of steps after which `epoch` is over: one more than the
 * step that contains this rank's last fresh example of the epoch. If the rank
 * has no example of the epoch, its last fresh example of an earlier epoch
 * counts. */
uint64_t schedule_epoch_end(const struct schedule *s, uint64_t epoch);

/* Like schedule_epoch_end(), but for the rank that has the most examples of the
 * epoch. With SCHEDULE_PAD this number is the same for all ranks. */
uint64_t schedule_epoch_end_all(const struct schedule *s, uint64_t epoch);

/* --- the echo factor changes --- */

/*
 * Change the factor to echo.p / echo.q, from the first example that is decoded
 * at or after `step`, but at the earliest one spread (schedule_facts) of
 * examples after the last change began. `step` must not be before anything that
 * this schedule has already decoded or served. Earlier servings do not change,
 * and echoes that are already due are still served. The log of changes (step,
 * p, q), applied in order to a schedule of the same configuration, gives the
 * same stream.
 *
 * Returns 0; -EINVAL if the factor is above echo_max; -EBUSY if the last change
 * has not begun by `step`; or -ERANGE if less than a spread of fresh units
 * would be left for the new factor, or, with an open end, none.
 *
 * Only the last SCHEDULE_SEGMENTS segments are kept, so positions more than
 * SCHEDULE_SEGMENTS - 2 changes ago cannot be found any more.
 */
int schedule_change(
	struct schedule *s, uint64_t step, struct schedule_echo echo);

/* Returns the first fresh number that has the factor of the newest change; 0 if
 * there was no change. For that number, schedule_fresh() sets need_by to the
 * step at which the change begins. */
uint64_t schedule_change_begins(const struct schedule *s);

/* Returns the factor of units that are decoded at or after `step`. */
struct schedule_echo schedule_echo_at(const struct schedule *s, uint64_t step);

/* --- saving and restoring --- */

struct schedule_restored {
	uint64_t step; /* the step of the next batch */
	/* Number of servings that are dropped: those that all old ranks
	 * together had not returned yet, if each had the schedule of the saved
	 * state. A short last batch of SCHEDULE_BATCH counts as a whole one. */
	uint64_t echoes_dropped;
};

/* Save the position before batch `step`. Returns the number of bytes written to
 * `out`; 0 if the position of `step` cannot be found, or if more than two
 * changes begin after it. All ranks write the same bytes. If all ranks have
 * made the same changes, the state of any rank restores every rank. */
size_t schedule_save(const struct schedule *s, uint64_t step,
	uint8_t out[SCHEDULE_STATE_BYTES]);

/*
 * Like schedule_init(), but begins at a saved position. If the world is the
 * same, the stream continues unchanged. The world may be another one; then
 * batch, window and lag may differ, too. In this case, every example of the run
 * that no rank has served yet is fresh once, and echoes that are still due are
 * dropped. Returns 0; -EBADMSG if the bytes are not a saved state; or -EINVAL
 * if the state was saved with other options, which the message names.
 */
int schedule_restore(struct schedule *s, const struct schedule_config *config,
	const uint8_t *state, size_t size, struct schedule_restored *restored,
	struct error *err);

/* --- figures --- */

/* Figures of a schedule. Ramp, drain and pool are exact if there is one echo
 * factor and the run has more fresh units than the spread. After a change they
 * hold for the newest factor. */
struct schedule_facts {
	uint64_t window; /* in examples */
	/* number of examples of this rank from here to the end */
	uint64_t fresh;
	/* number of examples of this rank that are in no batch */
	uint64_t fresh_dropped;
	/* number of slots of a short last batch that is not delivered */
	uint64_t slots_dropped;
	uint64_t steps; /* number of steps of the run */
	/* number of steps until each batch has its share of fresh examples */
	uint64_t ramp_steps;
	uint64_t drain_steps; /* number of steps after the last fresh example */
	/* maximum number of examples that have servings left */
	uint64_t pool_max;
	/* The servings of one example are at least `lag` steps apart, except
	 * those on both sides of exception_step or in it (UINT64_MAX: no
	 * exception). False if a small window was allowed, or if the run has
	 * fewer fresh examples than 2 batch x lag: then there is no minimum. */
	bool apart;
	uint64_t exception_step;
};

void schedule_facts(const struct schedule *s, struct schedule_facts *facts);

#endif

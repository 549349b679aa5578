/* SPDX-License-Identifier: MIT */
/*
 * The reader's side of the preparation service: pulls finished samples of a
 * loader that workers on other hosts have put into stores. It tells workers on
 * a board what the loader needs, learns there which ranges of examples they
 * have claimed and made, and pulls samples of planned servings. Nothing depends
 * on it: a pull may fail at any time, and then the loader makes the sample.
 *
 * Two threads: one talks with the board and waits for its answers, the other
 * pulls from all stores. States of a pull:
 *
 *	      puller_take()
 *	NONE ---------------> WAITS: a worker has claimed its range
 *	 ^ |                    | the range is done
 *	 | +------------------> READY
 *	 |                      | sent to the store
 *	 |                     SENT
 *	 |                      | the sample has come: there()
 *	 +-- puller_done() --- THERE
 *	 +-- missed(), or puller_drop() --- WAITS, READY, SENT
 *
 * Unless a comment says otherwise, a function needs the turn's lock. All accept
 * NULL in place of a puller, which means that there is no service.
 */
#ifndef PULL_H
#define PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/schedule/schedule.h"
#include "loader/core/memory.h"
#include "loader/core/settings.h"
#include "loader/core/turn.h"
#include "loader/dataset/dataset.h"

struct puller;

enum pull_state { PULL_NONE, PULL_WAITS, PULL_READY, PULL_SENT, PULL_THERE };

/* One sample to pull. Embedded in a struct of its owner; zeroed, it is NONE. */
struct pull {
	/* All members are private. */
	struct list node;
	enum pull_state state;
	uint64_t step, fresh, pass, index;
	uint32_t servings, sample;
	struct pull_op *op; /* SENT, THERE */
};

/* The progress of the loader. */
struct pull_progress {
	uint64_t step; /* the number of the next batch */
	/* Fresh numbers below this are in planned steps, or are read by the
	 * loader itself: a worker could not make them in time. */
	uint64_t planned_fresh, read_fresh;
	/* The trainer's time for a step without waiting, in ns; 0: unknown */
	uint64_t step_ns;
};

struct pull_config {
	const struct settings *s;
	const struct dataset *dataset;
	struct turn *turn;
	struct memory *memory;
	const struct schedule *schedule; /* copied */
	uint64_t step;			 /* the first step of this handle */
	uint64_t outstanding_max;
	void (*progress)(void *arg, struct pull_progress *out);
	/* The sample has come, or cannot be had: its state is THERE, or NONE */
	void (*there)(void *arg, struct pull *q);
	void (*missed)(void *arg, struct pull *q);
	void *arg;
};

/* -- Life; none of these needs the lock ------------------------------------ */

/* Create a puller, or set *out to NULL if the settings have no service. Returns
 * 0, or -errno with err set: the service cannot be used with these settings, or
 * the secret cannot be read. */
int puller_new(struct puller **out, const struct pull_config *config,
	struct error *err);
/* Start the threads. Returns 0 or -errno. */
int puller_start(struct puller *p);
/* End the threads; takes the lock. It takes at most a second. */
void puller_stop(struct puller *p);
void puller_free(struct puller *p);

/* -- Pulls ----------------------------------------------------------------- */

/* Will a worker probably deliver this fresh example? */
bool puller_expects(const struct puller *p, uint64_t fresh);
/* Begin to pull the sample of a serving that is planned in a step. Steps come
 * in order. Returns false if no worker has it. */
bool puller_take(struct puller *p, struct pull *q,
	const struct schedule_slot *slot, uint64_t step);
/* Returns the pull that is needed first and has no answer yet, and sets *step;
 * NULL if there is none. A pull that has just been sent does not count. */
struct pull *puller_first(
	const struct puller *p, uint64_t now_ns, uint64_t *step);
/* Give a pull up, because the loader makes the sample itself. */
void puller_drop(struct puller *p, struct pull *q);
/* Returns the number of pulls without an answer. */
uint32_t puller_waiting(const struct puller *p);
/* Must the puller be woken by puller_wake()? Returns true once. */
bool puller_take_stirred(struct puller *p);
/* Call this without the lock. */
void puller_wake(struct puller *p);

/* -- A pull that is THERE -------------------------------------------------- */

/* The sample, until puller_done(). This needs no lock. */
struct pull_sample {
	const uint8_t *pixels;	/* with AUGMENT_SLACK_BYTES behind them */
	uint32_t width, height; /* size of the whole upright image */
};
struct pull_sample pull_get(const struct pull *q);
void puller_done(struct puller *p, struct pull *q);

/* -- Counters -------------------------------------------------------------- */

struct pull_counts {
	uint64_t remote;  /* servings from pulled samples */
	uint64_t late;	  /* pulls that the loader gave up */
	uint64_t missing; /* samples that were not where they should be */
	uint64_t bad;	  /* samples with a wrong checksum or size */
	uint64_t failed;  /* pulls that a store has not answered */
	uint64_t bytes;	  /* bytes of pulled samples */
	bool live;	  /* the board answers */
	uint32_t workers; /* number of workers on the board */
};
void puller_counts(const struct puller *p, struct pull_counts *out);

#endif

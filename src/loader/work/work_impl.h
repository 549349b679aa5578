/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the worker. The *scout* is the thread that called
 * work_run(): it reads on the board which ranges are needed, and renews claims.
 * *Hands* are threads. A hand claims a range, makes its samples and reports
 * that it is done, over its own connections. work.lock guards what scout and
 * hands share. Private to this room.
 */
#ifndef WORK_IMPL_H
#define WORK_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/memcached/memcached_ask.h"
#include "loader/dataset/dataset.h"
#include "loader/service/service_board.h"
#include "loader/service/service_conf.h"
#include "loader/service/service_range.h"
#include "loader/service/service_state.h"
#include "loader/work/work.h"

#define WORK_JOBS_MAX 64u
/* maximum number of ranges found in one look */
#define WORK_CANDIDATES_MAX 512u
#define WORK_ANSWER_MS 2000u

/* A job that this worker knows. It stays until the end of the worker. */
struct work_job {
	/* Set once. */
	struct hash128 id;
	struct service_conf conf;
	struct settings s;
	/* NULL: this worker does not prepare the job */
	const struct dataset *dataset;
	char refusal[128]; /* the reason for that */
};

/* A range that somebody needs. */
struct work_range {
	const struct work_job *job;
	struct service_range r;
};

/* The claim of a hand on a range; guarded by work.lock. */
struct work_claim {
	bool held, lost;
	char key[SERVICE_KEY_MAX];
	char text[RANGE_STATE_MAX]; /* the claim's text on the board */
	struct work_range range;
};

struct work;

struct work_hand {
	struct work *work;
	pthread_t thread;
	bool started;
	struct asker *board, *store;
	struct work_claim claim;
	uint64_t random;
};

struct work {
	const struct work_config *config; /* set once, like the next members */
	struct dataset **datasets;
	uint64_t print, seed, maker;
	char id[SERVICE_ID_MAX + 1];
	struct work_hand *hands;
	unsigned nhands;

	/* Used only by the scout. */
	struct asker *board, *store;
	struct work_job *jobs[WORK_JOBS_MAX];
	unsigned njobs, nworkers;
	uint64_t look_jobs_ns, beat_ns, busy_ns;

	pthread_mutex_t lock; /* guards the next members */
	pthread_cond_t news;
	struct work_range *candidates; /* free ranges, the next one first */
	/* hands choose among this many of the first candidates */
	unsigned ncandidates, choose;
	uint64_t looks; /* number of looks at the board */
	/* no range is begun before this time, because the store has refused a
	 * sample */
	uint64_t full_until_ns;
	bool ending;

	_Atomic uint64_t ranges, decodes, samples, reused, lost, refused,
		failed, away;
};

static inline void work_count(_Atomic uint64_t *count, uint64_t n)
{
	(void)atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

/* -- work_jobs.c: the scout's look at the board ---------------------------- */

/* Read new jobs from the board, and find the ranges that readers need and
 * nobody has claimed. Returns the number of all ranges that are needed, or
 * -errno if the board does not answer. */
int work_look(struct work *w);
/* Does any reader still need this range? *known becomes false if the board does
 * not answer. Any thread may call this, with its own connection. */
bool work_is_needed(
	struct asker *board, const struct work_range *r, bool *known);

/* -- work_claim.c ---------------------------------------------------------- */

/* Claim a range. Returns 1 if the hand has it now, 0 if another process has it,
 * or -errno if the board does not answer. */
int work_claim(struct work_hand *h, const struct work_range *r);
/* Renew the claims of all hands. Called by the scout. */
void work_renew(struct work *w);
/* Report that the claimed range is done. Returns 1; 0 if the claim was lost or
 * the range is no longer needed; or -errno if the board does not answer. */
int work_done(struct work_hand *h, uint32_t mask, uint32_t ms);
/* Has another process the claimed range now? */
bool work_is_lost(struct work_hand *h);

/* -- work_make.c ----------------------------------------------------------- */

struct maker;

int maker_new(struct maker **out, struct work_hand *h);
void maker_free(struct maker *m);
/* Make the claimed range and put its samples into the store. Returns a mask
 * with the bits of the examples whose samples are all in the store. */
uint32_t maker_make(struct maker *m, const struct work_range *r);
/* Delete the samples that this hand has put into the store for the range, if
 * nobody has replaced them. */
void maker_drop(struct maker *m);

#endif

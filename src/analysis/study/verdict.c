/* SPDX-License-Identifier: MIT */
/*
 * Finds the bottleneck of a trainer in its profile. The bottleneck is undecided
 * unless one of these shows it:
 *
 * 1. The time of readers from one file to the next. If they wait for their
 * consumer most of the time, the bottleneck is compute. If they never wait,
 * reading limits the trainer: by fetching or by preparing, whichever takes
 * longer.
 *
 * 2. A delay of each file, if readers wait for some of the time. A reader may
 * wait because the trainer computes in between; then the waits are the share of
 * compute. Or it may wait because it is ahead; then the trainer's computing
 * hides everything that the reader does. The delay makes the trainer slower
 * only in the first case.
 *
 * 3. The rates, if their difference is larger than its interval. A machine that
 * does other work changes the rates from one measurement to the next, but
 * hardly the times of a reader that are measured together.
 */
#include <math.h>

#include "analysis/study/study.h"

/* Shares of a reader's time. If it waits for more than WAITS_MOST, it waits
 * most of the time; for less than WAITS_LEAST, hardly ever. */
#define WAITS_MOST 0.55
#define WAITS_LEAST 0.12

/* A reader that uses a processor for more than this share of its time is busy.
 */
#define RAN_MOST 0.6

/* If all readers together use processors for this share of the time, they may
 * take turns at one processor, as with Python's lock. */
#define RAN_TOGETHER 0.7

/* If there are at least this many threads, each may read at most one file of
 * each batch. */
#define MANY_READERS 8

/* If one part of a reader's time is longer than another by less than this
 * factor, the other part may in truth be longer. */
#define CLEARLY 1.25

/* If two times of readers differ by less than this factor, they count as equal.
 */
#define ALIKE 1.1

/* Shares of the time of an epoch: a part below LITTLE is hidden, a part above
 * SOME is large. */
#define LITTLE 0.05
#define SOME 0.20
#define HALF 0.50

static const char *const limit_names[LIMITS] = {
	[LIMIT_UNKNOWN] = "undecided",
	[LIMIT_COMPUTE] = "compute",
	[LIMIT_PREP] = "prep",
	[LIMIT_FETCH] = "fetch",
};

const char *profile_limit_name(enum profile_limit limit)
{
	return limit_names[limit];
}

static double waits_share(const struct profile_waits *w)
{
	return w->n > 0 ? fmax(0, 1 - w->busy_s / w->each_s) : 0;
}

/* Does a delay make the trainer slower? delay_is_hidden() is the opposite. If
 * neither returns true, this is unknown. */
static bool delay_shows(const struct profile *p)
{
	return p->delay.ci > 0 && p->delay.value - p->delay.ci > 0.5;
}

static bool delay_is_hidden(const struct profile *p)
{
	return p->delay.ci > 0 && p->delay.value + p->delay.ci < 0.5;
}

/* -- With everything cached ------------------------------------------------ */

/* Decide for readers that never wait. */
static enum profile_limit limit_of_busy(const struct profile *p)
{
	if (p->warm.ran >= RAN_MOST)
		return LIMIT_PREP;
	if (delay_shows(p) && p->readers < MANY_READERS)
		return LIMIT_PREP;
	if (delay_is_hidden(p) && p->readers * p->warm.ran < RAN_TOGETHER)
		return LIMIT_COMPUTE;
	return LIMIT_UNKNOWN;
}

/* Do tiny images make the trainer much faster? If so, preparation limits it,
 * whatever readers do: other threads may prepare what the readers have read. If
 * G is a lower bound, the rate without preparation is at least G. */
static bool tiny_shows_prep(const struct profile *p)
{
	double prep = 1 - p->r1.value / p->g.value;
	double ci = (1 - prep) *
		hypot(p->r1.ci / p->r1.value, p->g.ci / p->g.value);

	return prep - ci > (p->g_bound ? HALF : SOME);
}

/* Decide by G, because the readers could not be observed. */
static enum profile_limit warm_limit_by_rates(const struct profile *p)
{
	double prep = 1 - p->r1.value / p->g.value;
	double ci = hypot(p->r1.ci / p->r1.value, p->g.ci / p->g.value);

	if (prep - ci > SOME)
		return LIMIT_PREP;
	return !p->g_bound && prep + ci < SOME ? LIMIT_COMPUTE : LIMIT_UNKNOWN;
}

enum profile_limit profile_warm_limit(const struct profile *p)
{
	double waits = waits_share(&p->warm);

	if (p->warm.n == 0)
		return warm_limit_by_rates(p);
	if (!delay_shows(p) && tiny_shows_prep(p))
		return LIMIT_PREP;
	if (waits >= WAITS_MOST)
		return LIMIT_COMPUTE;
	if (waits <= WAITS_LEAST)
		return limit_of_busy(p);
	if (delay_is_hidden(p))
		return LIMIT_COMPUTE;
	return delay_shows(p) && 1 - waits > CLEARLY * waits ? LIMIT_PREP
							     : LIMIT_UNKNOWN;
}

void profile_use_readers(struct profile *p)
{
	double waits = waits_share(&p->warm);

	/* If R1 is uncertain, because other programs use the machine, it proves
	 * nothing. */
	if (p->r1.ci > SOME * p->r1.value)
		return;
	/* The trainer computes while its readers wait, so it could compute at
	 * a rate of r1 / waits if it did nothing else. */
	if (delay_shows(p) && waits > WAITS_LEAST &&
		p->r1.value / waits > p->g.value) {
		p->g.value = p->r1.value / waits;
		p->g_bound = false;
	}
	/* A delay is hidden, so the trainer computes all of the time. */
	if (delay_is_hidden(p) && p->g_bound && p->g.value <= p->r1.value &&
		profile_warm_limit(p) == LIMIT_COMPUTE) {
		p->g = p->r1;
		p->g_bound = false;
	}
}

/* -- With the source ------------------------------------------------------- */

static double fetch_share(const struct profile *p)
{
	struct model m = profile_model(p);

	return 1 - model_time(&m, 0) / model_time(&m, 1 - p->cached);
}

double profile_fetch_ci(const struct profile *p)
{
	return (1 - fetch_share(p)) *
		hypot(p->r1.ci / p->r1.value, p->r0.ci / p->r0.value);
}

bool profile_hides_source(const struct profile *p)
{
	return fetch_share(p) + profile_fetch_ci(p) < SOME;
}

/* Returns the largest part of the time of a reader that takes turns with the
 * trainer. */
static enum profile_limit largest_part(
	double compute, double prep, double fetch)
{
	if (compute > CLEARLY * fmax(prep, fetch))
		return LIMIT_COMPUTE;
	if (prep > CLEARLY * fmax(compute, fetch))
		return LIMIT_PREP;
	if (fetch > CLEARLY * fmax(compute, prep))
		return LIMIT_FETCH;
	return LIMIT_UNKNOWN;
}

/* Decide by the times of the readers with nothing cached. */
static enum profile_limit cold_limit(
	const struct profile *p, enum profile_limit warm)
{
	const struct profile_waits *c = &p->cold;
	double waits = waits_share(c), fetch_s = c->busy_s - p->warm.busy_s;

	if (c->n == 0 || p->warm.n == 0)
		return LIMIT_UNKNOWN;
	/* Readers wait because their consumers prepare. */
	if (waits > WAITS_LEAST && warm == LIMIT_PREP && !delay_shows(p))
		return LIMIT_UNKNOWN;
	if (waits >= WAITS_MOST)
		return LIMIT_COMPUTE;
	if (waits > WAITS_LEAST)
		return delay_is_hidden(p) ? LIMIT_COMPUTE
			: delay_shows(p)  ? largest_part(c->each_s - c->busy_s,
						    p->warm.busy_s, fetch_s)
					  : LIMIT_UNKNOWN;
	/* With nothing cached, readers never wait. If computing is the limit
	 * with everything cached, readers wait in that case, or are ahead. */
	if (warm == LIMIT_COMPUTE && c->each_s < ALIKE * p->warm.each_s)
		return LIMIT_COMPUTE;
	if (warm == LIMIT_COMPUTE)
		return fetch_share(p) - profile_fetch_ci(p) > LITTLE
			? LIMIT_FETCH
			: LIMIT_UNKNOWN;
	return warm == LIMIT_PREP ? largest_part(0, p->warm.busy_s, fetch_s)
				  : LIMIT_UNKNOWN;
}

/* Find the bottleneck from the parts of the time of an epoch. `warm` is the
 * bottleneck without the source. */
static enum profile_limit limit_by_rates(
	const struct profile *p, enum profile_limit warm)
{
	struct model m = profile_model(p);
	struct model_shares s = model_share(&m, 1 - p->cached, 0);
	double fetch = fetch_share(p), ci = profile_fetch_ci(p);
	double prep = s.prep / (s.prep + s.compute + s.fetch);

	if (fetch - ci > HALF)
		return LIMIT_FETCH;
	if (warm == LIMIT_COMPUTE)
		return fetch + ci < SOME    ? LIMIT_COMPUTE
			: fetch - ci > SOME ? LIMIT_FETCH
					    : LIMIT_UNKNOWN;
	if (!p->g_bound && fetch - ci > fmax(prep, SOME))
		return LIMIT_FETCH;
	if (warm == LIMIT_PREP && fetch + ci < fmax(prep, SOME))
		return LIMIT_PREP;
	return LIMIT_UNKNOWN;
}

/* Do the readers contradict the rates? Readers and rates are not measured at
 * the same time, so on a noisy machine the share of fetching may be wrong. */
static bool is_contradicted(const struct profile *p, enum profile_limit limit)
{
	double fetch = fetch_share(p), ci = profile_fetch_ci(p);

	return limit == LIMIT_FETCH ? fetch + ci < LITTLE : fetch - ci > HALF;
}

enum profile_limit profile_limit(
	const struct profile *p, enum profile_limit *likely)
{
	struct model m = profile_model(p);
	struct model_shares s = model_share(&m, 1 - p->cached, p->gaps);
	enum profile_limit warm = profile_warm_limit(p), limit = LIMIT_UNKNOWN;
	char first = model_bottleneck(&s)[0];

	if (p->cached <= 0)
		limit = cold_limit(p, warm);
	if (limit == LIMIT_UNKNOWN)
		limit = limit_by_rates(p, warm);
	else if (is_contradicted(p, limit))
		limit = LIMIT_UNKNOWN;
	if (likely)
		*likely = limit != LIMIT_UNKNOWN	     ? limit
			: first == 'f'			     ? LIMIT_FETCH
			: first == 'p' || warm == LIMIT_PREP ? LIMIT_PREP
							     : LIMIT_COMPUTE;
	return limit;
}

const char *profile_verdict(const struct profile *p)
{
	struct model m = profile_model(p);
	struct model_shares s = model_share(&m, 1 - p->cached, p->gaps);
	const char *verdict = model_verdict(&s);
	enum profile_limit limit = profile_limit(p, NULL);

	/* If G is only a bound, there may be preparation that it does not show,
	 * and the readers may show a limit that the rates do not show. */
	if (verdict[0] == 'n' && (limit == LIMIT_PREP || limit == LIMIT_FETCH))
		return "moderately";
	return verdict;
}

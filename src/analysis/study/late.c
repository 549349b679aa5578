/* SPDX-License-Identifier: MIT */
/* Measures readers alternately with and without a delay; see late_impl.h. One
 * thread. */
#include "analysis/study/late_impl.h"

#include <math.h>

/* The delay of each file, as a share of a reader's time from one file to its
 * next. It is half of the time for which the reader waits, because a reader
 * that is ahead can make up for that much. If a reader hardly waits, its delay
 * is a quarter of its time. */
#define DELAY_OF_WAITS 0.5
#define DELAY_OF_BUSY 0.25
#define DELAY_LEAST_S 0.0002
#define DELAY_LONGEST_S 1

/* At most this many pairs of measurements with and without the delay. */
#define PAIRS 3

/* If there is one pair, half of the interval is PAIR_CI, because one pair
 * proves nothing. If there are more, it is at least PAIRS_CI, because two pairs
 * may agree by chance. */
#define PAIR_CI 1
#define PAIRS_CI 0.15

/* Measure the trainer with a delay. Even with the smallest delay, the daemon
 * sees every read. */
static int measure_delayed(struct analysis_run *r, double delay_s)
{
	int rc = run_tell(r,
		json_pack("{s:s, s:s, s:I}", "cmd", "content", "content",
			"real-late", "delay_us",
			(json_int_t)fmax(1, 1e6 * delay_s)));

	return rc < 0 ? rc
		      : run_segment(r, "the measurement with delays",
				r->c->seconds / 4.0);
}

/* Restore the content that was served before. */
static int end_delays(struct analysis_run *r)
{
	return run_tell(r,
		json_pack("{s:s, s:s}", "cmd", "content", "content",
			r->stand_ins ? "stand-in" : "real"));
}

static double delay_for(const struct profile_waits *w)
{
	double waits_s = w->each_s - w->busy_s;

	return fmin(DELAY_LONGEST_S,
		fmax(DELAY_LEAST_S,
			fmax(DELAY_OF_WAITS * waits_s,
				waits_s < DELAY_OF_BUSY * w->each_s
					? DELAY_OF_BUSY * w->each_s
					: 0)));
}

static void note_effect(struct profile *p, const double *effect, unsigned n)
{
	double mean = 0, square = 0;

	for (unsigned i = 0; i < n; i++)
		mean += effect[i] / n;
	for (unsigned i = 0; i < n; i++)
		square += pow(effect[i] - mean, 2);
	p->delay.value = mean;
	p->delay.ci = n < 2 ? PAIR_CI
			    : fmax(PAIRS_CI, 2 * sqrt(square / (n - 1) / n));
}

/* Could another measurement of the delays decide what the bottleneck is? */
static bool late_is_wanted(const struct profile *p)
{
	bool told = p->delay.ci > 0 && fabs(p->delay.value - 0.5) > p->delay.ci;

	if (p->warm.n == 0 || told)
		return false;
	return profile_warm_limit(p) == LIMIT_UNKNOWN ||
		(p->r0.value > 0 && profile_limit(p, NULL) == LIMIT_UNKNOWN);
}

/* Compare intervals that do not include the time for which readers wait for a
 * processor, because other programs change that time from one measurement to
 * the next. */
static int measure_pairs(struct analysis_run *r)
{
	struct profile *p = r->p;
	double delay_s = delay_for(&p->warm), effect[PAIRS];
	struct profile_waits plain = p->warm, late;
	unsigned n = 0;
	int rc = 0;

	while (rc == 0 && n < PAIRS && late_is_wanted(p) && run_has_time(r)) {
		rc = measure_delayed(r, delay_s);
		late = waits_of(&r->waits);
		if (rc < 0 || late.n == 0)
			break;
		effect[n] = (late.each_s - plain.each_s) / delay_s;
		note_effect(p, effect, ++n);
		if (n == PAIRS || !late_is_wanted(p))
			break;
		rc = measure_delayed(r, 0);
		plain = waits_of(&r->waits);
		if (plain.n == 0)
			break;
	}
	return rc;
}

int late_measure(struct analysis_run *r)
{
	struct profile *p = r->p;
	int rc;

	/* If parts of large files are read, the intervals do not show how a
	 * reader spends its time. */
	if (r->by_bytes || (p->warm.n > 0 && !late_is_wanted(p)))
		return 0;
	rc = measure_delayed(r, 0);
	if (rc < 0)
		return rc;
	p->readers = r->segment.last.readers;
	p->warm = waits_of(&r->waits);
	if (p->readers <= 0)
		p->warm.n = 0;
	rc = measure_pairs(r);
	return rc < 0 ? rc : end_delays(r);
}

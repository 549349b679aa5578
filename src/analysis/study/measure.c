/* SPDX-License-Identifier: MIT */
/* Makes the measurements in order. The mount's mask takes the trainer from one
 * share of misses to the next, and tiny images show the rate that the trainer
 * would have without preparation. One thread. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "analysis/study/late_impl.h"

/* If the rate without misses has changed by more than this, a note is added. */
#define DRIFT 0.03

/* If misses lower the rate by at most this factor, points between all and no
 * misses are not measured. */
#define SOURCE_HIDDEN 0.97

/* Pages of misses and of tiny images stay in the kernel for up to 150 ms. If
 * the thread that drops them (src/mount/fs) is in time, at most 1 MiB or a 25th
 * of the dataset stays, whichever is more. */
#define STAY_S 0.15
#define STAY_BYTES 1048576.0
#define STAY_SHARE 0.04
#define STAY_MOST 0.3
#define EPOCH_LEAST_S 0.2

/* Rates that differ by at most this share count as equal. */
#define SAME 0.03

/* The exact rate is assumed to differ from a measured one by at most this
 * share. */
#define EXACT 0.02

/* If processors are in use for more than this share of the time, they may be
 * the limit. So may one process that uses more than this share of one
 * processor. */
#define CPUS_BUSY 0.8

/* The delay of a tiny image, as a share of the time that a reader has for one
 * image. If the readers limit the trainer, this delay makes it slower by a
 * sixth. */
#define DELAY 0.2
#define DELAY_MOST_S 1

/* Merge a new measurement into a point that was measured n times. */
static void merge_point(struct analysis_run *r, struct profile_point *was,
	const struct profile_point *now, double n)
{
	repeats_add(&r->repeats, was->rate.value, now->rate.value);
	was->rate.ci = hypot(n * was->rate.ci, now->rate.ci) / (n + 1);
	was->rate.value = (n * was->rate.value + now->rate.value) / (n + 1);
	was->miss = (n * was->miss + now->miss) / (n + 1);
}

static void add_point(struct analysis_run *r, const struct profile_point *now)
{
	struct profile *p = r->p;

	for (unsigned i = 0; i < p->npoints; i++)
		if (p->points[i].x == now->x) {
			merge_point(r, &p->points[i], now, r->times[i]++);
			return;
		}
	if (p->npoints == PROFILE_POINTS_MAX)
		return;
	r->times[p->npoints] = 1;
	p->points[p->npoints++] = *now;
}

/* Returns the share of the dataset whose pages stay in the kernel at this rate.
 */
static double share_staying(const struct profile *p, double rate)
{
	return fmin(STAY_S * rate / p->samples,
		fmax(STAY_SHARE, STAY_BYTES / (double)p->source_bytes));
}

/* Returns the corrected rate: reads of pages that stay are not seen. In random
 * order, their share of the reads is half of the square of the share of the
 * dataset that stays. */
static struct profile_rate rate_of_dropped(const struct analysis_run *r)
{
	struct profile_rate rate = segment_rate(&r->segment);
	double share = share_staying(r->p, rate.value);

	rate.ci = fmax(rate.ci, share * share / 2 * rate.value);
	return rate;
}

/* Measure a point with a share x of the dataset in the cache. */
static int measure_at(struct analysis_run *r, double x)
{
	struct profile_point now = {.x = x};
	char doing[64];
	int rc = run_mask(r, x);

	(void)snprintf(doing, sizeof(doing),
		"the measurement with %.0f %% cached", 100 * x);
	if (rc == 0)
		rc = run_segment(r, doing, r->c->seconds / 2.0);
	if (rc < 0)
		return rc;
	if (x == 0) {
		const struct waits none = {.ran_s = 0};

		waits_add(&r->cold, &none, &r->waits);
		r->p->cold = waits_of(&r->cold);
	}
	now.miss = segment_miss(&r->segment);
	now.rate = x < 1 ? rate_of_dropped(r) : segment_rate(&r->segment);
	add_point(r, &now);
	return 0;
}

static int measure_warm(struct analysis_run *r)
{
	int rc = run_segment(r, "the start", r->c->seconds / 2.0);

	if (rc == 0)
		rc = measure_at(r, 1);
	if (rc == 0)
		rc = run_check(r);
	if (rc < 0)
		return rc;
	r->p->r1 = r->p->points[0].rate;
	r->p->g = r->p->r1;
	r->p->g_bound = true;
	r->p->cpus_used = r->cpus_used;
	r->p->gaps = segment_gaps(&r->segment);
	if (r->segment.last.refused)
		profile_note(r->p,
			"R1 is that of librefrain through the mount; its own "
			"reads of a cache are faster");
	if (r->p->points[0].miss > 0.01)
		profile_note(r->p,
			"some reads missed although everything was cached");
	return 0;
}

static int check_epoch(struct analysis_run *r)
{
	double epoch_s = r->p->samples / r->p->r0.value;

	if (epoch_s >= EPOCH_LEAST_S &&
		share_staying(r->p, r->p->r0.value) <= STAY_MOST)
		return 0;
	return error_set(r->err, -ENOTSUP,
		"an epoch takes only %.2f s from the source, in which the "
		"kernel keeps part of what was read; analyse a larger dataset",
		epoch_s);
}

/* Do misses make the trainer slower by more than chance could explain? */
static bool misses_cost(const struct profile *p, const struct model *m)
{
	return m->r0 <= SOURCE_HIDDEN * m->r1 &&
		p->r1.value - p->r0.value > hypot(p->r1.ci, p->r0.ci);
}

/* Measure each share of misses twice, the second time in reverse order. If the
 * machine gets slower or faster during this time, all shares change alike. */
static int measure_misses(struct analysis_run *r)
{
	struct profile *p = r->p;
	double x[MODEL_POINTS + 1] = {0};
	unsigned n = 1;
	struct model m;
	int rc = measure_at(r, 0);

	if (rc < 0)
		return rc;
	p->r0 = p->points[1].rate;
	rc = check_epoch(r);
	m = profile_model(p);
	for (unsigned i = 0; i < MODEL_POINTS && misses_cost(p, &m); i++)
		x[n++] = 1 - model_point(&m, i);
	for (unsigned i = 1; rc == 0 && i < n; i++)
		rc = measure_at(r, x[i]);
	while (rc == 0 && n-- > 0)
		rc = measure_at(r, x[n]);
	p->r0 = p->points[1].rate;
	return rc;
}

static int measure_drift(struct analysis_run *r)
{
	struct profile *p = r->p;
	double was = p->r1.value;
	int rc = measure_at(r, 1);

	if (rc < 0)
		return rc;
	p->r1 = p->points[0].rate;
	/* `was` is the first measurement, and the present value the mean of
	 * two. So this compares with half of the drift. */
	if (fabs(p->r1.value / was - 1) > DRIFT / 2)
		profile_note(p,
			"the rate with everything cached changed by more than "
			"3 % during the run; measure again on a quiet machine");
	return 0;
}

/* Make all intervals wider, by the variation between measurements. */
static void widen_intervals(struct analysis_run *r)
{
	struct profile *p = r->p;
	double once = repeats_interval(&r->repeats);

	p->repeats = once;
	for (unsigned i = 0; i < p->npoints; i++)
		p->points[i].rate.ci = fmax(p->points[i].rate.ci,
			once / sqrt(r->times[i]) * p->points[i].rate.value);
	p->r1 = p->points[0].rate;
	p->r0 = p->points[1].rate;
}

/* Measure again until the bottleneck is known or the time is over. */
static int measure_more(struct analysis_run *r)
{
	int rc = 0;

	widen_intervals(r);
	while (rc == 0 && run_has_time(r) &&
		profile_limit(r->p, NULL) == LIMIT_UNKNOWN) {
		rc = measure_at(r, 0);
		if (rc == 0)
			rc = measure_at(r, 1);
		if (rc == 0)
			widen_intervals(r);
	}
	return rc;
}

/* Measure the rate with tiny images, each of which is delayed by `late_s`. */
static int measure_tiny(
	struct analysis_run *r, double late_s, struct profile_rate *out)
{
	json_t *content = json_pack("{s:s, s:s, s:I}", "cmd", "content",
		"content", late_s > 0 ? "tiny-late" : "tiny", "delay_us",
		(json_int_t)ceil(1e6 * late_s));
	int rc = run_tell(r, content);

	r->x = -1;
	if (rc == 0)
		rc = run_segment(r, "the measurement with tiny images",
			r->c->seconds / 2.0);
	*out = rate_of_dropped(r);
	return rc;
}

/* Returns the delay that shows whether readers are the limit. It is computed
 * from the time that each reader had for a file in the last segment. Returns 0
 * if that time is unknown. */
static double delay_s(const struct analysis_run *r)
{
	const struct counts *begun = &r->segment.begun;
	const struct counts *last = &r->segment.last;
	double reader_s = last->readers * (last->time_s - begun->time_s);

	return fmin(
		DELAY_MOST_S, DELAY * reader_s / (last->tiny - begun->tiny));
}

/* Delay the tiny images, to find out whether the rate `tiny` without a delay is
 * that of the trainer alone. If this is not clear, the rate is only a lower
 * bound. */
static int measure_late(struct analysis_run *r, struct profile_rate *tiny)
{
	struct profile_rate late;
	double late_s = delay_s(r);
	int rc;

	if (r->cpus_used >= CPUS_BUSY || r->busiest >= CPUS_BUSY || late_s <= 0)
		return 0;
	rc = measure_tiny(r, late_s, &late);
	if (rc < 0)
		return rc;
	r->p->g_bound = fabs(late.value / tiny->value - 1) > SAME ||
		hypot(tiny->ci, late.ci) > EXACT * (tiny->value + late.value);
	if (!r->p->g_bound) {
		tiny->value = (tiny->value + late.value) / 2;
		tiny->ci = hypot(tiny->ci, late.ci) / 2;
	}
	return 0;
}

/* If this measurement failed, report the others without it. */
static int note_not_tiny(struct analysis_run *r, int rc)
{
	int status = r->trainer.status;

	if (rc == -ENODATA)
		profile_note(r->p,
			"the command stopped reading when images were tiny");
	else if (rc == -ECHILD && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		profile_note(r->p,
			"the command ended before it was measured with tiny "
			"images; make it run longer, or lower --seconds");
	else if (rc == -ECHILD)
		profile_note(r->p, "the command failed on tiny images");
	else
		return rc;
	return 0;
}

/* Measure the trainer without preparation, with tiny images. Then delay each
 * image by a good part of its reader's time. If this does not change the rate
 * while processors are idle, the rate is exact, because the trainer itself is
 * the limit. */
static int measure_alone(struct analysis_run *r)
{
	struct profile *p = r->p;
	struct profile_rate tiny;
	int rc;

	p->g = p->r1;
	p->g_bound = true;
	if (r->c->no_tiny)
		return 0;
	rc = measure_tiny(r, 0, &tiny);
	if (rc == 0 && r->segment.last.tiny <= r->segment.begun.tiny) {
		profile_note(p,
			"no JPEG files were read, so the cost of preparation "
			"is unknown");
		return 0;
	}
	if (rc == 0)
		rc = measure_late(r, &tiny);
	if (rc < 0)
		return note_not_tiny(r, rc);
	if (tiny.value > p->r1.value)
		p->g = tiny;
	return 0;
}

/* If this measurement failed, report the others without it. */
static int measure_late_reads(struct analysis_run *r)
{
	int rc = late_measure(r);

	if (rc != -ENODATA && rc != -ECHILD)
		return rc;
	profile_note(r->p,
		"the command ended or stopped reading before it was measured "
		"with delays");
	return 0;
}

/* G was measured only once, so its interval must be at least that of a single
 * rate. */
static void widen_alone(struct profile *p)
{
	p->g.ci = p->g_bound && p->g.value <= p->r1.value
		? p->r1.ci
		: fmax(p->g.ci, p->repeats * p->g.value);
}

static int by_miss(const void *a, const void *b)
{
	const struct profile_point *x = a, *y = b;

	return (x->miss > y->miss) - (x->miss < y->miss);
}

static int analyse(struct analysis_run *r)
{
	int rc = run_prepare(r);

	if (rc == 0)
		rc = run_copy(r);
	if (rc == 0)
		rc = run_start(r);
	if (rc == 0)
		rc = measure_warm(r);
	if (rc == 0)
		rc = measure_late_reads(r);
	if (rc == 0)
		rc = measure_misses(r);
	if (rc == 0)
		rc = measure_drift(r);
	if (rc == 0)
		rc = measure_late_reads(r);
	if (rc == 0)
		rc = measure_more(r);
	if (rc == 0)
		rc = measure_alone(r);
	if (rc == 0) {
		profile_use_readers(r->p);
		widen_alone(r->p);
	}
	qsort(r->p->points, r->p->npoints, sizeof(r->p->points[0]), by_miss);
	return rc;
}

int analyze_run(const struct analyze_config *config, struct profile *p,
	struct error *err)
{
	struct analysis_run r = {.c = config, .p = p, .err = err};
	int rc = analyse(&r);

	run_end(&r);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/* Predicts rates from a profile, and computes the errors of the predictions. */
#include <math.h>

#include "analysis/study/study.h"

/* Between two measured points, the trainer is assumed to differ from the model
 * by up to this share. */
#define BETWEEN 0.02

/* With a plan, or with other workers or sources, it is assumed to differ by up
 * to this share. */
#define OTHERWISE 0.05

/* If processors are used less than this share of the time, this share is used
 * instead. */
#define USED_LEAST 0.05

double profile_prep(const struct profile *p)
{
	double used = fmax(p->cpus_used, USED_LEAST);

	return used < 1 ? p->r1.value / used : p->r1.value;
}

/* Returns the model without point `left_out`. The points at the ends are rates
 * of the model. */
static struct model model_but(const struct profile *p, unsigned left_out)
{
	struct model m = {.g = p->g.value,
		.g_bound = p->g_bound,
		.prep = profile_prep(p),
		.r1 = p->r1.value,
		.r0 = p->r0.value,
		.source = p->s.value};

	model_fix(&m);
	for (unsigned i = 0; i < p->npoints; i++)
		if (i != left_out && p->points[i].x > 0 && p->points[i].x < 1)
			model_add(
				&m, p->points[i].miss, p->points[i].rate.value);
	model_settle(&m);
	return m;
}

struct model profile_model(const struct profile *p)
{
	return model_but(p, PROFILE_POINTS_MAX);
}

bool profile_forecast(
	const struct profile *p, unsigned i, struct profile_forecast *f)
{
	const struct profile_point *q = &p->points[i];
	struct model m = model_but(p, i);

	*f = (struct profile_forecast){.model = 1 / model_time(&m, q->miss),
		.serial = 1 / model_serial(&m, q->miss),
		.overlapped = 1 / model_overlapped(&m, q->miss)};
	return m.n > 0 && q->x > 0 && q->x < 1;
}

const char *profile_change_name(enum profile_change change)
{
	static const char *const name[CHANGES] = {
		[CHANGE_NONE] = "nothing changed",
		[CHANGE_ENOUGH] = "a sufficient cache",
		[CHANGE_ALL] = "everything cached",
		[CHANGE_PLAN] = "a plan (order known ahead)",
		[CHANGE_WORKERS] = "twice the workers",
		[CHANGE_RECODE] = "half the bytes a file",
		[CHANGE_FASTER] = "a source twice as fast",
		[CHANGE_ECHO] = "echoes (librefrain)",
	};

	return name[change];
}

/* Do workers only read? If so, twice as many workers would take the same time
 * even if preparation and the trainer were twice as fast. */
static bool workers_only_read(const struct profile *p)
{
	struct model m = profile_model(p), slow = model_workers(&m, 2), fast;
	double miss = 1 - p->cached;

	m.g *= 2;
	m.prep *= 2;
	fast = model_workers(&m, 2);
	return model_time(&fast, miss) >=
		(1 - BETWEEN) * model_time(&slow, miss);
}

bool profile_change_known(const struct profile *p, enum profile_change change)
{
	if (change == CHANGE_RECODE && p->unit == UNIT_MB)
		return false;
	if (!p->g_bound)
		return true;
	return change == CHANGE_WORKERS ? workers_only_read(p)
					: change != CHANGE_ECHO;
}

/* Returns the seconds per sample after a change. */
static double time_after(
	const struct profile *p, double cached, enum profile_change change)
{
	struct model m = profile_model(p);
	double miss = 1 - cached, enough = 1 - model_enough(&m);

	switch (change) {
	case CHANGE_ENOUGH:
		return model_time(&m, fmin(miss, enough));
	case CHANGE_RECODE:
		/* Twice as many files are cached. That smaller files are also
		 * fetched and decoded faster is left out, because it depends on
		 * the source and on the form. */
		return model_time(&m, fmax(0, 1 - 2 * cached));
	case CHANGE_ALL:
		return model_time(&m, 0);
	case CHANGE_PLAN:
		m = model_planned(&m);
		break;
	case CHANGE_WORKERS:
		m = model_workers(&m, 2);
		break;
	case CHANGE_FASTER:
		m = model_faster(&m, 2);
		break;
	case CHANGE_ECHO:
		return 1 / m.g;
	case CHANGE_NONE:
	case CHANGES:
		break;
	}
	return model_time(&m, miss);
}

struct wanted_change {
	double cached;
	enum profile_change change;
	double time_s; /* computed from the measured rates */
};

/* Returns the square of the change of the time if *rate changes by its
 * interval. */
static double effect(const struct profile *p, struct profile_rate *rate,
	const struct wanted_change *w)
{
	struct profile_rate was = *rate;
	double change;

	rate->value += rate->ci;
	change = time_after(p, w->cached, w->change) - w->time_s;
	*rate = was;
	return change * change;
}

struct profile_rate profile_after(
	const struct profile *p, double cached, enum profile_change change)
{
	struct profile q = *p;
	struct wanted_change w = {
		cached, change, time_after(p, cached, change)};
	bool otherwise = change == CHANGE_PLAN || change == CHANGE_WORKERS ||
		change == CHANGE_FASTER;
	/* Begin with the variation of a later run, which is that of the
	 * measured runs. */
	double square = pow((otherwise ? OTHERWISE : BETWEEN) * w.time_s, 2) +
		pow(p->repeats * w.time_s, 2);

	/* The speed of the source was measured only once, so its interval must
	 * be at least that of one measurement. */
	q.s.ci = fmax(q.s.ci, q.repeats * q.s.value);
	square += effect(&q, &q.g, &w) + effect(&q, &q.r1, &w) +
		effect(&q, &q.r0, &w) + effect(&q, &q.s, &w);
	for (unsigned i = 0; i < q.npoints; i++)
		square += effect(&q, &q.points[i].rate, &w);
	return (struct profile_rate){
		1 / w.time_s, sqrt(square) / w.time_s / w.time_s};
}

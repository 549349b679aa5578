/* SPDX-License-Identifier: MIT */
/* The model of a trainer; see model.h. */
#include "analysis/study/model.h"

#include <math.h>

/* The knee is at most at this share of misses, because at a larger share the
 * two formulas differ too little. */
#define KNEE_MAX 0.85

/* Limits of L. Beyond these, the measured rate was not that of the trainer. L
 * may exceed 1, because batches in order can make a trainer slower than the
 * serial formula says. */
#define L_LEAST (-0.25)
#define L_MOST 2

/* If input takes no more than the first share of the time, the trainer is not
 * input-bound; up to the second, moderately. */
#define NOT_BOUND 0.05
#define MODERATELY_BOUND 0.20

/* A cache counts as enough if the time is at most this factor longer than with
 * everything cached. */
#define ENOUGH 1.01

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double limited(double v, double least, double most)
{
	return v < least ? least : v > most ? most : v;
}

void model_fix(struct model *m)
{
	if (m->r0 > m->r1)
		m->r0 = m->r1;
	if (m->g < m->r1) {
		m->g = m->r1;
		m->g_bound = true;
	}
	if (m->source < m->r0)
		m->source = m->r0;
	if (m->prep < m->r1)
		m->prep = m->r1;
}

double model_serial(const struct model *m, double miss)
{
	return (1 - miss) / m->r1 + miss / m->r0;
}

double model_overlapped(const struct model *m, double miss)
{
	return larger(1 / m->r1, miss / m->r0);
}

static double blend(const struct model *m, double l, double miss)
{
	return l * model_serial(m, miss) + (1 - l) * model_overlapped(m, miss);
}

double model_knee(const struct model *m)
{
	return limited(m->r0 / m->r1, 0, KNEE_MAX);
}

double model_point(const struct model *m, unsigned i)
{
	double knee = model_knee(m);

	return i == 0 ? 0.6 * knee : i == 1 ? knee : (1 + knee) / 2;
}

double model_l(const struct model *m, double miss)
{
	unsigned i = 0;

	while (i < m->n && m->at[i] <= miss)
		i++;
	if (i == m->n)
		return m->n ? m->l[m->n - 1] : 0;
	if (i == 0)
		return m->l[0];
	return m->l[i - 1] +
		(m->l[i] - m->l[i - 1]) * (miss - m->at[i - 1]) /
		(m->at[i] - m->at[i - 1]);
}

void model_add(struct model *m, double miss, double rate)
{
	unsigned i = m->n;

	if (m->n == MODEL_POINTS)
		return;
	for (; i > 0 && m->at[i - 1] > miss; i--) {
		m->at[i] = m->at[i - 1];
		m->l[i] = m->l[i - 1];
	}
	m->at[i] = miss;
	m->l[i] = model_lambda(m, miss, rate);
	m->n++;
}

/* Make the times rise with the misses: if a time is shorter than the one before
 * it, both become their mean. */
void model_settle(struct model *m)
{
	double mean[MODEL_POINTS], time;
	unsigned of[MODEL_POINTS], n = 0, i = 0;

	for (unsigned k = 0; k < m->n; k++) {
		mean[n] = blend(m, m->l[k], m->at[k]);
		of[n++] = 1;
		for (; n > 1 && mean[n - 2] > mean[n - 1]; n--) {
			mean[n - 2] = (of[n - 2] * mean[n - 2] +
					      of[n - 1] * mean[n - 1]) /
				(of[n - 2] + of[n - 1]);
			of[n - 2] += of[n - 1];
		}
	}
	for (unsigned k = 0; k < n; k++)
		for (time = mean[k]; of[k] > 0; of[k]--, i++)
			m->l[i] = model_lambda(m, m->at[i], 1 / time);
}

/* Returns the time at a measured point, but at least that without misses,
 * because hits never make the trainer slower. */
static double time_at(const struct model *m, unsigned i)
{
	return limited(blend(m, m->l[i], m->at[i]), 1 / m->r1, 1 / m->r0);
}

/* Between two points, L could give a time outside of the times at both, so the
 * time is limited to these. */
double model_time(const struct model *m, double miss)
{
	double least = 1 / m->r1, most = 1 / m->r0;
	unsigned i = 0;

	for (; i < m->n && m->at[i] <= miss; i++)
		least = time_at(m, i);
	if (i < m->n)
		most = time_at(m, i);
	return limited(blend(m, model_l(m, miss), miss), least, most);
}

double model_lambda(const struct model *m, double miss, double rate)
{
	double serial = model_serial(m, miss);
	double overlapped = model_overlapped(m, miss);

	if (serial <= overlapped || rate <= 0)
		return 0;
	return limited((1 / rate - overlapped) / (serial - overlapped), L_LEAST,
		L_MOST);
}

/* Returns the smallest cached share that is enough. The time grows with the
 * misses, so bisection finds it. */
double model_enough(const struct model *m)
{
	double most = ENOUGH * model_time(m, 0), low = 0, high = 1;

	if (model_time(m, 1) <= most)
		return 0;
	for (int i = 0; i < 50; i++) {
		double miss = (low + high) / 2;

		if (model_time(m, miss) <= most)
			low = miss;
		else
			high = miss;
	}
	return 1 - low;
}

/* Returns the share of hits with LRU. The reuse distance of an item is a + u -
 * a u, with a and u uniform. */
double model_hits_lru(double c)
{
	if (c <= 0)
		return 0;
	return c >= 1 ? 1 : c + (1 - c) * log1p(-c);
}

/* Returns the share of hits with random eviction. The misses m solve 1 - m =
 * ((1 - exp(-m / c)) c / m)^2. */
double model_hits_random(double c)
{
	double low = 0, high = 1;

	if (c <= 0)
		return 0;
	if (c >= 1)
		return 1;
	for (int i = 0; i < 60; i++) {
		double m = (low + high) / 2;
		double seen = -expm1(-m / c) * c / m;

		/* Near m = 0 both sides are near 1, and the left one is larger.
		 */
		if (1 - m > seen * seen)
			low = m;
		else
			high = m;
	}
	return 1 - (low + high) / 2;
}

struct model model_planned(const struct model *m)
{
	struct model n = *m;

	n.n = 0;
	n.r0 = m->source < m->r1 ? m->source : m->r1;
	return n;
}

/* Returns the model with more workers: more requests wait at the source at a
 * time, and more processors prepare. */
struct model model_workers(const struct model *m, double times)
{
	struct model n = *m;

	n.r1 = limited(m->r1 * times, m->r1,
		larger(m->r1, m->prep < m->g ? m->prep : m->g));
	n.r0 = limited(m->r0 * times, m->r0, m->source);
	model_fix(&n);
	return n;
}

/* Returns the model with a faster source: the whole wait for the source gets
 * shorter, including its latency. */
struct model model_faster(const struct model *m, double times)
{
	struct model n = *m;
	double r0 = m->r0 * times;

	n.source *= times;
	n.r0 = r0 < m->r1 ? r0 : m->r1;
	return n;
}

double model_echo(const struct model *m, double miss)
{
	return larger(1, m->g * model_time(m, miss));
}

struct model_shares model_share(const struct model *m, double miss, double gaps)
{
	double all = model_time(m, miss), warm = model_time(m, 0);
	struct model_shares s = {.compute = 1 / m->g};

	s.prep = larger(0, warm - s.compute);
	s.fetch = larger(0, all - warm);
	/* Subtract gaps, in which the trainer does other work, from the compute
	 * time: the measured rates include them. A gap takes as long with
	 * misses as without. */
	s.gaps = gaps > 0 && gaps < 1 ? warm * gaps : 0;
	if (s.gaps > s.compute)
		s.gaps = s.compute;
	s.compute -= s.gaps;
	return s;
}

static double bound_share(const struct model_shares *s)
{
	return (s->prep + s->fetch) /
		(s->compute + s->prep + s->fetch + s->gaps);
}

const char *model_verdict(const struct model_shares *s)
{
	double share = bound_share(s);

	if (share < NOT_BOUND)
		return "not";
	return share <= MODERATELY_BOUND ? "moderately" : "highly";
}

const char *model_bottleneck(const struct model_shares *s)
{
	if (bound_share(s) < NOT_BOUND)
		return "compute";
	return s->fetch >= s->prep ? "fetch" : "prep";
}

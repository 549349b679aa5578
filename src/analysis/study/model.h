/* SPDX-License-Identifier: MIT */
/*
 * The model of a trainer: computes its rate at any share of misses from the
 * rates with all hits and with all misses, and from a few points between them.
 * Pure functions; no state.
 *
 * The time per sample is a weighted mean: L times the serial formula (a reader
 * waits for each miss and does nothing meanwhile) plus 1 - L times the
 * overlapped one (misses are fetched while hits are prepared). L is measured
 * around the knee, where the two differ most, and interpolated: one L for all
 * shares of misses was wrong by up to 11 % for simulated trainers with more
 * workers than processors.
 */
#ifndef STUDY_MODEL_H
#define STUDY_MODEL_H

#include <stdbool.h>

#define MODEL_POINTS 3

/* Rates in samples a second, all above 0. */
struct model {
	double g;      /* rate of the trainer alone; at least r1 */
	bool g_bound;  /* g is a lower bound: the rate may be higher */
	double prep;   /* rate of preparation by all processors; at least r1 */
	double r1;     /* rate with everything cached */
	double r0;     /* rate with nothing cached; at most r1 */
	double source; /* rate of the source alone at full speed; at least r0 */
	/* Measured shares of misses in ascending order, and L at each of them
	 * (0: overlapped, 1: serial). */
	double at[MODEL_POINTS], l[MODEL_POINTS];
	unsigned n;
};

/* Correct rates that contradict each other, because noise can put them in the
 * wrong order. */
void model_fix(struct model *m);

/* Returns the seconds for one sample if a share `miss` (0 to 1) of the samples
 * is not cached: by the serial formula, by the overlapped one, or by the model.
 */
double model_serial(const struct model *m, double miss);
double model_overlapped(const struct model *m, double miss);
double model_time(const struct model *m, double miss);

/* Returns the share of misses at which the two formulas differ most, where L is
 * measured. It is at most 0.85, because the formulas agree again at 1. */
double model_knee(const struct model *m);

/* Returns share i of the misses to measure. The shares rise, and the second one
 * is the knee. */
double model_point(const struct model *m, unsigned i);

/* Add a rate that was measured at a share of misses. */
void model_add(struct model *m, double miss, double rate);

/* Remove noise, after all points were added: a sample must not take less time
 * if there are more misses. */
void model_settle(struct model *m);

/* model_l() interpolates L at a share of misses. The other function computes L
 * from a rate that was measured there. */
double model_l(const struct model *m, double miss);
double model_lambda(const struct model *m, double miss, double rate);

/* Returns the smallest cached share that gives 99 % of the rate without misses.
 */
double model_enough(const struct model *m);

/* Returns the share of hits of a cache that holds a share `cached` (0 to 1) of
 * the samples and evicts the least recently used item, or a random one. For a
 * cache that never evicts, it is `cached`. */
double model_hits_lru(double cached);
double model_hits_random(double cached);

/* Models of the same trainer after a change: its order is known in advance; it
 * has `times` as many workers; its source is `times` as fast. */
struct model model_planned(const struct model *m);
struct model model_workers(const struct model *m, double times);
struct model model_faster(const struct model *m, double times);

/* Returns how often each sample must be repeated so that the trainer never
 * waits. */
double model_echo(const struct model *m, double miss);

/* The parts of the time per sample, in seconds. Their sum is the time of an
 * epoch divided by its samples. */
struct model_shares {
	double compute, prep, fetch, gaps;
};

/* Split the time of a sample. `gaps` is the share of the time, without misses,
 * in which nothing is read at all. */
struct model_shares model_share(
	const struct model *m, double miss, double gaps);

/* Returns how much of the time is spent waiting for input, in the words of
 * TensorFlow's profiler: "not", "moderately" or "highly" input-bound. */
const char *model_verdict(const struct model_shares *s);

/* Returns the part to improve first: "fetch", "prep" or "compute". */
const char *model_bottleneck(const struct model_shares *s);

#endif

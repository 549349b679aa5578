/* SPDX-License-Identifier: MIT */
/* Types and functions that the files auto*.c share; private to them. */
#ifndef ENGINE_AUTO_IMPL_H
#define ENGINE_AUTO_IMPL_H

#include "loader/engine/auto.h"

/* A rate is measured with at least this many examples. */
#define AUTO_FULL_READS 32
/* If parts differ by more than this factor, the speed has changed. */
#define AUTO_JUMP 1.15

/* -- auto_row.c -- */

/* The median. This and the means are 0 for an empty row. */
double row_middle(const struct auto_row *r);
/* The mean without the lowest and the highest quarter. */
double row_middle_half(const struct auto_row *r);
double row_mean(const struct auto_row *r);
void row_add(struct auto_row *r, double v);
/* Forget all but the last n values. */
void row_keep(struct auto_row *r, uint32_t n);
/* Are the last n values below (above) all earlier ones, and below (above) their
 * median by more than the factor `by`? */
bool row_fell(const struct auto_row *r, uint32_t n, double by);
bool row_rose(const struct auto_row *r, uint32_t n, double by);

/* -- auto_fetch.c: fetching by a plan -- */

/* Add a step. Call this after each step. */
void fetch_step(struct auto_echo *a, const struct auto_sums *now);
/* Set the upstream's times in *out if they have been measured. */
void fetch_measured(const struct auto_echo *a, struct auto_part *out);
/* Is enough measured for a large change, and for a small one? */
bool fetch_is_known(const struct auto_echo *a);
bool fetch_is_settled(const struct auto_echo *a);

#endif

/* SPDX-License-Identifier: MIT */
/* Types and functions for the files auto*.c only. */
#ifndef ENGINE_AUTO_IMPL_H
#define ENGINE_AUTO_IMPL_H

#include "loader/engine/auto.h"

/* The minimum number of examples in the measurement of a rate. */
#define AUTO_FULL_READS 32
/* If parts differ by more than this ratio, the speed has changed. */
#define AUTO_JUMP 1.15

/* -- auto_row.c -- */

/* Returns the median. The median and the means of an empty row are 0. */
double row_middle(const struct auto_row *r);
/* Returns the mean of the values without the lowest and the highest quarter. */
double row_middle_half(const struct auto_row *r);
double row_mean(const struct auto_row *r);
void row_add(struct auto_row *r, double v);
/* Forget all but the last n values. */
void row_keep(struct auto_row *r, uint32_t n);
/* Has the row fallen (risen)? This is true if the last n values are below
 * (above) all earlier values, and also below (above) the median of the earlier
 * values by more than the ratio `by`. */
bool row_fell(const struct auto_row *r, uint32_t n, double by);
bool row_rose(const struct auto_row *r, uint32_t n, double by);

/* -- auto_fetch.c: fetching by a plan -- */

/* Add the sums after a step. Call this after each step. */
void fetch_step(struct auto_echo *a, const struct auto_sums *now);
/* Set the times of the upstream in *out, if they were measured. */
void fetch_measured(const struct auto_echo *a, struct auto_part *out);
/* Were enough values measured for a large change, and for a small one? */
bool fetch_is_known(const struct auto_echo *a);
bool fetch_is_settled(const struct auto_echo *a);

#endif

/* SPDX-License-Identifier: MIT */
/* Inside the choice of the echo factor. Private to src/auto. */
#ifndef ENGINE_AUTO_IMPL_H
#define ENGINE_AUTO_IMPL_H

#include "loader/engine/auto.h"

/* The fewest examples that show a rate. */
#define AUTO_FULL_READS 32
/* Parts that differ by more have another speed. */
#define AUTO_JUMP 1.15

/* -- auto_row.c -- */

/* The median. These are 0 for an empty row. */
double row_middle(const struct auto_row *r);
/* The mean without the lowest and the highest quarter. */
double row_middle_half(const struct auto_row *r);
double row_mean(const struct auto_row *r);
void row_add(struct auto_row *r, double v);
/* Keep the last n. */
void row_keep(struct auto_row *r, uint32_t n);
/*
 * Are the last n values below, or above, all earlier ones, and off their median
 * by more than this factor?
 */
bool row_fell(const struct auto_row *r, uint32_t n, double by);
bool row_rose(const struct auto_row *r, uint32_t n, double by);

/* -- auto_fetch.c: fetching by a plan -- */

/* After each step. */
void fetch_step(struct auto_echo *a, const struct auto_sums *now);
/* Set the upstream's times, if they are measured. */
void fetch_measured(const struct auto_echo *a, struct auto_part *out);
/* Is enough measured for a large change, and for a small one? */
bool fetch_is_known(const struct auto_echo *a);
bool fetch_is_settled(const struct auto_echo *a);

#endif

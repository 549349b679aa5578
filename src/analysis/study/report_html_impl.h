/* SPDX-License-Identifier: MIT */
/* The plots of the HTML report: inline SVG, each with its heading. */
#ifndef STUDY_REPORT_HTML_IMPL_H
#define STUDY_REPORT_HTML_IMPL_H

#include "analysis/study/study.h"

/* The width of every plot, in units of its view box. */
#define PLOT_WIDTH 720

/* Format a time for people. */
#define TIME_TEXT_MAX 32
const char *report_time(double s, char buf[TIME_TEXT_MAX]);

/* Returns a text that says how input-bound the trainer is, and names its
 * bottleneck; without a full stop. */
#define REPORT_TEXT_MAX 256
const char *report_verdict(const struct profile *p, char buf[REPORT_TEXT_MAX]);

/* Returns the factor by which more requests in flight would use the whole rate
 * of the source; 1: the present number is enough. */
double report_more_readers(const struct profile *p);

/* Were points between the ends measured, so that one can be predicted from the
 * others? */
bool report_has_errors(const struct profile *p);

/* Returns the most useful action, without a full stop. */
const char *report_first(const struct profile *p, char buf[REPORT_TEXT_MAX]);

/* Begin a table of the figures of a plot, which opens on demand, because a
 * screen reader cannot read a plot. `columns` is a row of <th>. */
void plot_table_begin(FILE *to, const char *columns);
void plot_table_end(FILE *to);

/* Draw the rate over the cached share: the model, its band, and the measured
 * points. */
void plot_rates(const struct profile *p, const struct model *m, FILE *to);

/* Draw hits over the cached share, for each way in which a cache evicts. */
void plot_hits(const struct profile *p, FILE *to);

/* Draw the run: samples a second, and the share of the time in which readers
 * waited. */
void plot_run(const struct profile *p, FILE *to);

/* Draw the predicted rates against the measured ones. */
void plot_errors(const struct profile *p, FILE *to);

#endif

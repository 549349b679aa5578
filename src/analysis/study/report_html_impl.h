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

/* A text that says how input-bound the trainer is, and its bottleneck; without
 * a full stop. */
#define REPORT_TEXT_MAX 256
const char *report_verdict(const struct profile *p, char buf[REPORT_TEXT_MAX]);

/* The factor by which more requests in flight would use the whole source; 1:
 * the present number is enough. */
double report_more_readers(const struct profile *p);

/* Can one point be predicted from the others? */
bool report_has_errors(const struct profile *p);

/* The most useful action, without a full stop. */
const char *report_first(const struct profile *p, char buf[REPORT_TEXT_MAX]);

/* The figures of a plot as a table that opens on demand: a plot has no text for
 * a screen reader. `columns` is a row of <th>. */
void plot_table_begin(FILE *to, const char *columns);
void plot_table_end(FILE *to);

/* The rate over the share cached: the model, its band, measured points. */
void plot_rates(const struct profile *p, const struct model *m, FILE *to);

/* Hits over the share cached, for each way in which the cache evicts. */
void plot_hits(const struct profile *p, FILE *to);

/* The run: samples a second, and the share of the time in which readers waited.
 */
void plot_run(const struct profile *p, FILE *to);

/* Predicted against measured rates. */
void plot_errors(const struct profile *p, FILE *to);

#endif

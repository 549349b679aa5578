/* SPDX-License-Identifier: MIT */
/* Data-stall analysis: runs a trainer once over a mount with --analysis, makes
 * the cache look smaller step by step, and measures the trainer's rate. The
 * result is a profile. Reports and predictions use only the profile. */
#ifndef STUDY_H
#define STUDY_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "analysis/study/model.h"

#define PROFILE_VERSION 1
#define PROFILE_POINTS_MAX 8
#define PROFILE_TICKS_MAX 512
#define PROFILE_NOTES_MAX 8
#define PROFILE_TEXT_MAX 256

/* The unit of rates. UNIT_SAMPLES: each file is known to be one sample, or the
 * user has given their number. UNIT_FILES: a file may have several samples.
 * UNIT_MB, 10^6 bytes: files do have several. */
enum profile_unit { UNIT_SAMPLES, UNIT_FILES, UNIT_MB, UNITS };

/* A rate in samples a second, and half of its 95 % interval. */
struct profile_rate {
	double value, ci; /* a value of 0 means that it was not measured */
};

/* The rate of the trainer with one share of the dataset in the cache. */
struct profile_point {
	double x;    /* share of the keys that may hit */
	double miss; /* share of the items that missed */
	struct profile_rate rate;
};

/* The mean time of a reader from one file to its next. The time for which it
 * waits for a processor is not included. */
struct profile_waits {
	double n;      /* number of intervals; 0: not measured */
	double each_s; /* mean time */
	/* part of the time in which the reader does not wait for its consumer
	 */
	double busy_s;
	double ran; /* share of the time in which the reader used a processor */
};

/* A moment of the run. */
struct profile_tick {
	double time_s; /* time since the command began to read */
	double rate;   /* rate since the tick before */
	/* share of the time since the tick before in which a reader waited */
	double starved;
	/* share of the keys that may hit; -1: tiny images were served */
	double x;
};

/* A profile. Its texts are printable UTF-8, as escape_text() returns. */
struct profile {
	char machine[PROFILE_TEXT_MAX], command[PROFILE_TEXT_MAX];
	char source[PROFILE_TEXT_MAX];
	uint64_t source_bytes, source_items;
	double samples;		/* number of samples in the dataset */
	enum profile_unit unit; /* unit of `samples` */
	unsigned cpus;	  /* number of processors that the trainer may use */
	double cpus_used; /* share of these in use with everything cached */
	/* share of the dataset for which the cache of the report has room */
	double cached;
	struct profile_rate g, r1, r0, s;
	bool g_bound; /* g is a lower bound */
	/* share of the time in long pauses, such as those between epochs, with
	 * everything cached */
	double gaps;
	/* half of the 95 % interval of one measurement, as a share of the rate;
	 * it shows the effect of other programs */
	double repeats;
	/* The number of threads that read at a time, and their mean times with
	 * everything cached and with nothing cached. */
	double readers;
	struct profile_waits warm, cold;
	/* The effect of a delay of each file on the time per sample, as a
	 * multiple of the delay divided by the number of readers: 1 if reading
	 * limits the trainer, 0 if reading is hidden. ci 0: not measured. */
	struct profile_rate delay;
	struct profile_point points[PROFILE_POINTS_MAX];
	unsigned npoints;
	struct profile_tick ticks[PROFILE_TICKS_MAX];
	unsigned nticks;
	char notes[PROFILE_NOTES_MAX][PROFILE_TEXT_MAX];
	unsigned nnotes;
};

struct analyze_config {
	const char *mountpoint; /* mountpoint of the analysis */
	/* directory that the mount covers for the command; NULL: the command
	 * names the mountpoint instead */
	const char *source;
	/* the last element is NULL; the caller owns the strings */
	char **command;
	/* number of samples in the dataset; 0: one in each file, or not known
	 */
	double samples;
	unsigned seconds; /* time limit of each segment */
	/* time limit for the start, in which nothing is read */
	unsigned start_s;
	unsigned copy_s;		   /* time limit for copying images */
	bool no_tiny;			   /* do not serve tiny images */
	const volatile sig_atomic_t *stop; /* set when a signal has arrived */
};

/* Fetch the dataset into the cache, start the command, measure, and end the
 * command. Returns 0, or -errno with err set if the command cannot be analysed.
 * The command has ended in both cases. */
int analyze_run(const struct analyze_config *config, struct profile *p,
	struct error *err);

/* Returns the name of the unit: "samples", "files" or "MB". */
const char *profile_unit_name(const struct profile *p);

/* Add a line about the run, which the report shows. */
void profile_note(struct profile *p, const char *text);

/* Returns the profile as JSON, with all results that follow from it; NULL if
 * memory is short. */
json_t *profile_json(const struct profile *p);

/* Read a profile. Returns 0, or -EINVAL if it is not of this version. */
int profile_parse(const json_t *json, struct profile *p, struct error *err);

/* Returns the model that follows from the measurements. */
struct model profile_model(const struct profile *p);

/* Predictions of the rate at a measured point: by the model of the other
 * points, and by each of the two formulas alone. */
struct profile_forecast {
	double model, serial, overlapped;
};

/* Predict a measured point from the others. Returns false for the two points
 * without which there is no model. */
bool profile_forecast(
	const struct profile *p, unsigned i, struct profile_forecast *f);

/* Returns an estimate: how many samples a second all processors could prepare.
 */
double profile_prep(const struct profile *p);

/* The part to improve first. */
enum profile_limit {
	LIMIT_UNKNOWN,
	LIMIT_COMPUTE,
	LIMIT_PREP,
	LIMIT_FETCH,
	LIMITS
};

/* Returns "undecided", "compute", "prep" or "fetch". */
const char *profile_limit_name(enum profile_limit limit);

/* Set G by the times of the readers, if these show more than tiny images do. */
void profile_use_readers(struct profile *p);

/* Returns the bottleneck with everything cached. */
enum profile_limit profile_warm_limit(const struct profile *p);

/* Returns the bottleneck with p->cached of the dataset cached; LIMIT_UNKNOWN if
 * the measurements do not distinguish two limits. In that case *likely (may be
 * NULL) is the limit that the measured rates suggest; otherwise it is the
 * result. */
enum profile_limit profile_limit(
	const struct profile *p, enum profile_limit *likely);

/* Returns how input-bound the trainer is: "not", "moderately" or "highly". */
const char *profile_verdict(const struct profile *p);

/* Is fetching a small part of an epoch, even at the upper end of its interval?
 */
bool profile_hides_source(const struct profile *p);

/* Returns half of the interval of the share of fetching. */
double profile_fetch_ci(const struct profile *p);

/* Changes of the trainer or the mount, the cheapest first. */
enum profile_change {
	CHANGE_NONE,
	CHANGE_WORKERS,
	CHANGE_PLAN,
	CHANGE_ECHO,
	CHANGE_ENOUGH,
	CHANGE_RECODE,
	CHANGE_ALL,
	CHANGE_FASTER,
	CHANGES
};

const char *profile_change_name(enum profile_change change);

/* Does the profile say what effect the change would have? */
bool profile_change_known(const struct profile *p, enum profile_change change);

/* Returns the rate after a change, with a share `cached` of the samples in the
 * cache. Half of its interval follows from the intervals of all measured rates.
 */
struct profile_rate profile_after(
	const struct profile *p, double cached, enum profile_change change);

/* Print a page of text for people, of at most 40 lines. */
void profile_report(const struct profile *p, FILE *to);

/* Print one page of HTML with plots. If this fails, ferror(to) is set. */
void profile_html(const struct profile *p, FILE *to);

#endif

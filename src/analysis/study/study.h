/* SPDX-License-Identifier: MIT */
/*
 * Data-stall analysis: runs a trainer once over a mount with --analysis, makes
 * the cache look smaller step by step, and measures the trainer's rate. The
 * result is a profile. Reports and predictions use nothing else.
 */
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

/*
 * The unit of rates: samples, if a file is known to be one or their number was
 * given; files, if they may hold several; 10^6 bytes, if they do hold several.
 */
enum profile_unit { UNIT_SAMPLES, UNIT_FILES, UNIT_MB, UNITS };

/* A rate in samples a second, and half of its 95 % interval. */
struct profile_rate {
	double value, ci; /* value 0: not measured */
};

/* The trainer at one share of the dataset in the cache. */
struct profile_point {
	double x;    /* share of the keys that may hit */
	double miss; /* share of the items that missed */
	struct profile_rate rate;
};

/* The mean time of a reader from one file to its next, without the time for
 * which it waits for a processor. */
struct profile_waits {
	double n;      /* intervals; 0: not measured */
	double each_s; /* mean */
	/* part in which the reader does not wait for its consumer */
	double busy_s;
	double ran; /* share of the time spent on a processor */
};

/* A moment of the run. */
struct profile_tick {
	double time_s;	/* time since the command began to read */
	double rate;	/* rate since the tick before */
	double starved; /* share of that time in which a reader waited */
	/* share of the keys that may hit; -1: tiny images were served */
	double x;
};

/* Texts are printable UTF-8, as escape_text() makes it. */
struct profile {
	char machine[PROFILE_TEXT_MAX], command[PROFILE_TEXT_MAX];
	char source[PROFILE_TEXT_MAX];
	uint64_t source_bytes, source_items;
	double samples;		/* number in the dataset */
	enum profile_unit unit; /* of samples */
	unsigned cpus;		/* processors that the trainer may use */
	double cpus_used; /* share of them in use with everything cached */
	/* share of the dataset that the reported cache has room for */
	double cached;
	struct profile_rate g, r1, r0, s;
	bool g_bound; /* g is a lower bound */
	/* share of the time in pauses between epochs and similar ones, with
	 * everything cached */
	double gaps;
	/* half of the 95 % interval of one measurement, as a share of the rate:
	 * the effect of other programs */
	double repeats;
	/* The number of threads that read at a time, and their times with
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
	char **command;	  /* ends with NULL; strings are borrowed */
	double samples;	  /* number in the dataset; 0: one a file, or unknown */
	unsigned seconds; /* time limit of each segment */
	unsigned start_s; /* time limit without reads */
	unsigned copy_s;  /* time limit for copying images */
	bool no_tiny;	  /* do not replace images */
	const volatile sig_atomic_t *stop; /* set when a signal came */
};

/*
 * Fetch the dataset into the cache, start the command, measure, and end the
 * command. Returns -errno with err set if the command cannot be analysed; it
 * has ended in any case.
 */
int analyze_run(const struct analyze_config *config, struct profile *p,
	struct error *err);

/* The name of the unit: "samples", "files" or "MB". */
const char *profile_unit_name(const struct profile *p);

/* Add a line about the run, which the report repeats. */
void profile_note(struct profile *p, const char *text);

/* The profile as JSON, with all results that follow from it; NULL if memory is
 * short. */
json_t *profile_json(const struct profile *p);

/* Read a profile. Returns -EINVAL if it is not of this version. */
int profile_parse(const json_t *json, struct profile *p, struct error *err);

/* The model that follows from the measurements. */
struct model profile_model(const struct profile *p);

/* Rates at a measured point, by the model of the other points and by the two
 * formulas alone. */
struct profile_forecast {
	double model, serial, overlapped;
};

/* Predict a measured point. Returns false for the two points that every model
 * needs. */
bool profile_forecast(
	const struct profile *p, unsigned i, struct profile_forecast *f);

/* Samples a second that all processors could prepare: an estimate. */
double profile_prep(const struct profile *p);

/* The part to improve first. */
enum profile_limit {
	LIMIT_UNKNOWN,
	LIMIT_COMPUTE,
	LIMIT_PREP,
	LIMIT_FETCH,
	LIMITS
};

/* "undecided", "compute", "prep" or "fetch". */
const char *profile_limit_name(enum profile_limit limit);

/* Set G by the times of readers, if they show more than tiny images do. */
void profile_use_readers(struct profile *p);

/* The bottleneck with everything cached. */
enum profile_limit profile_warm_limit(const struct profile *p);

/*
 * The bottleneck with p->cached of the dataset cached. LIMIT_UNKNOWN: the
 * measurements do not tell two limits apart. *likely (may be NULL) is then the
 * limit that the measured rates suggest, and otherwise the result itself.
 */
enum profile_limit profile_limit(
	const struct profile *p, enum profile_limit *likely);

/* How input-bound: "not", "moderately" or "highly". */
const char *profile_verdict(const struct profile *p);

/* Does fetching take little of an epoch, even at the end of its interval? */
bool profile_hides_source(const struct profile *p);

/* Half of the interval of the share of fetching. */
double profile_fetch_ci(const struct profile *p);

/* Changes to the trainer or the mount, the cheapest first. */
enum profile_change {
	CHANGE_NONE,
	CHANGE_WORKERS,
	CHANGE_PLAN,
	CHANGE_ECHO,
	CHANGE_ENOUGH,
	CHANGE_ALL,
	CHANGE_FASTER,
	CHANGES
};

const char *profile_change_name(enum profile_change change);

/* Does the profile tell what the change would bring? */
bool profile_change_known(const struct profile *p, enum profile_change change);

/* The rate after a change, with a share `cached` of the samples in the cache,
 * and half of its interval, which comes from the intervals of all measured
 * rates. */
struct profile_rate profile_after(
	const struct profile *p, double cached, enum profile_change change);

/* A page of text for people, of at most 40 lines. */
void profile_report(const struct profile *p, FILE *to);

/* One page of HTML with plots. Errors stay with the stream. */
void profile_html(const struct profile *p, FILE *to);

#endif

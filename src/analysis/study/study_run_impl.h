/* SPDX-License-Identifier: MIT */
/* The state of a running analysis, and its steps. One thread uses it. */
#ifndef STUDY_RUN_IMPL_H
#define STUDY_RUN_IMPL_H

#include <sys/types.h>

#include "analysis/study/repeats_impl.h"
#include "analysis/study/segment_impl.h"
#include "analysis/study/trainer_impl.h"
#include "analysis/study/waits_impl.h"

struct ctl_client;

struct analysis_run {
	const struct analyze_config *c;
	struct profile *p;
	struct error *err;
	struct ctl_client *ctl;
	struct trainer trainer;
	struct segment segment;
	double cpus_used; /* in the last segment, of those allowed */
	double busiest; /* largest share of a processor that one process used */
	dev_t device;	/* of the mount */
	bool starting;	/* nothing is measured yet */
	unsigned looks; /* at the trainer, so far, while it starts */
	double x;	/* share that may hit now; -1: tiny images */
	bool stand_ins; /* images stand in for others */
	bool by_bytes;	/* samples are counted by their bytes */
	struct counts before;	   /* the command */
	struct counts began, tick; /* of reading, of the last tick */
	double now_s;		   /* of the last look */
	struct repeats repeats;
	unsigned times[PROFILE_POINTS_MAX]; /* that a point was measured */
	struct waits waits; /* of readers, in the last segment */
	struct waits cold;  /* in segments with nothing cached */
};

/* A command without further results to the daemon; takes over `request`. */
int run_tell(struct analysis_run *r, json_t *request);

/* Is there time for a measurement that is not always made? */
bool run_has_time(const struct analysis_run *r);

/* The interval between two readings of the counters; a signal ends it early. */
void run_wait(void);

/* Connect, wait for the list of files. Sets what the profile says of source and
 * machine. */
int run_prepare(struct analysis_run *r);

/* Fetch all files into the cache, or as many as there is time and room for if
 * images can stand in for the rest. Sets the unit of rates, and the rate s. */
int run_copy(struct analysis_run *r);

/* Let only a share x of the cached items hit. */
int run_mask(struct analysis_run *r, double x);

/* Start the command. Returns once it has begun to read. */
int run_start(struct analysis_run *r);

/*
 * Measure for `seconds` at most; the result is in r->segment and r->cpus_used.
 * `doing` completes "... during " in messages. -ECHILD: the command has ended;
 * -ENODATA: it does not read; -ENOTSUP: what it reads cannot be counted.
 */
int run_segment(struct analysis_run *r, const char *doing, double seconds);

/* Check the last segment. -ENOTSUP: files were not read to their ends. -ENOSPC:
 * too much of what was read was not cached. */
int run_check(struct analysis_run *r);

/* End the command, by force if need be, and disconnect. */
void run_end(struct analysis_run *r);

#endif

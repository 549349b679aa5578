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
	/* share of the allowed processors in use, in the last segment */
	double cpus_used;
	double busiest; /* largest share of a processor that one process used */
	dev_t device;	/* device of the mount */
	bool starting;	/* nothing has been measured yet */
	unsigned looks; /* number of looks at the trainer while it starts */
	/* share of the keys that may hit now; -1: tiny images are served */
	double x;
	bool stand_ins;	      /* cached images are served in place of others */
	bool by_bytes;	      /* the unit of the rates is bytes */
	struct counts before; /* counts before the command was started */
	/* counts at the first read, and at the last tick */
	struct counts began, tick;
	double now_s; /* time of the last look */
	struct repeats repeats;
	/* number of measurements of each point */
	unsigned times[PROFILE_POINTS_MAX];
	struct waits waits; /* waits of the readers in the last segment */
	/* waits of the readers in segments with nothing cached */
	struct waits cold;
};

/* Send the daemon a command that returns nothing else. Owns `request`. */
int run_tell(struct analysis_run *r, json_t *request);

/* Is there time for an optional measurement? */
bool run_has_time(const struct analysis_run *r);

/* Wait until the next reading of the counters; a signal ends the wait early. */
void run_wait(void);

/* Connect, and wait for the list of files. Sets the profile's members about
 * source and machine. */
int run_prepare(struct analysis_run *r);

/* Fetch all files into the cache. If images can stand in for others, only fetch
 * as many as time and room allow. Sets the unit of rates, and the rate s. */
int run_copy(struct analysis_run *r);

/* Have the mount let only a share x of the cached items hit. */
int run_mask(struct analysis_run *r, double x);

/* Start the command. Returns when it has begun to read. */
int run_start(struct analysis_run *r);

/* Measure for at most `seconds`; the result is in r->segment and r->cpus_used.
 * `doing` completes "... during " in messages. Returns 0; -ECHILD if the
 * command has ended; -ENODATA if it does not read; or -ENOTSUP if its reads
 * cannot be counted. */
int run_segment(struct analysis_run *r, const char *doing, double seconds);

/* Check the last segment. Returns 0; -ENOTSUP if files were not read to their
 * ends; or -ENOSPC if too many reads were not answered from the cache. */
int run_check(struct analysis_run *r);

/* End the command, by force if necessary, and disconnect. */
void run_end(struct analysis_run *r);

#endif

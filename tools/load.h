/* SPDX-License-Identifier: MIT */
/* Shared by the files of `refrain load`: the command's options, results, logs
 * and state. One thread. */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/option.h"
#include "config_options.h"
#include "refrain/loader.h"

struct load_options {
	/* without the members dataset and state */
	struct refrain_config config;
	bool drop_last, no_hash, json, list;
	unsigned step_ms, timeout_s;
	uint64_t steps; /* maximum number of steps; 0: until the run ends */
	const char *state, *trace, *step_log;
	const char *echo_log, *echo_replay;
};

/* The logs of echo changes: one that is replayed, and one that is written. */
struct load_echo {
	char *replayed; /* path of the replayed log, or NULL */
	const char *path;
	FILE *log; /* the written log, or NULL */
	uint64_t before,
		/* number of changes by earlier runs; number of changes in the
		 * written log */
		written;
};

/* The two files by which a run resumes. The trace has one line per sample. The
 * state has the loader's state after the last consumed batch, and the length of
 * the trace after it. */
struct load_state {
	const char *path, *trace_path; /* path; NULL without the option */
	/* path of a temporary file, which replaces the state when it is
	 * complete */
	char *fresh_path;
	FILE *trace;
	uint64_t trace_bytes;
	struct load_echo *echo;
	unsigned char loader[REFRAIN_STATE_MAX];
	/* length of the loader's state; 0: there is none, so the run begins
	 * anew */
	size_t loader_bytes;
};

/* Room for the loader's statistics as JSON. */
#define LOAD_STATS_JSON_BYTES 8192

/* The results of the run. */
struct load_result {
	uint64_t steps, fresh, served, bytes;
	uint64_t examples, classes;
	uint64_t pixel_hash;
	uint64_t fields_hash; /* hash of the columns of --fields */
	uint64_t open_ns, first_ns, run_ns;
	struct refrain_stats stats;
	char stats_json[LOAD_STATS_JSON_BYTES]; /* the statistics as JSON */
};

/* -- load_options.c -- */

/* Write a message of the loader into err, and replace names of members in it by
 * the names of options. Returns rc. */
int load_options_say(const char *message, int rc, struct error *err);

/* Check the options by rules that the tables cannot express, and set values
 * that depend on other options. Returns 0 or -EINVAL. */
int load_options_finish(struct load_options *o, struct error *err);

/* -- load_echo.c -- */

/* Read the log that the loader replays. */
int load_echo_replay(struct load_echo *e, const char *path, struct error *err);
/* Open the log for writing. An earlier run has written `before` changes. */
int load_echo_open(struct load_echo *e, const char *path, uint64_t before,
	struct error *err);
/* Write the changes since the last call. */
int load_echo_used(
	struct load_echo *e, struct refrain_loader *l, struct error *err);
void load_echo_close(struct load_echo *e);

/* -- load_state.c -- */

/* Read the state of an earlier run if there is one, and open the trace at the
 * position of the state. Returns 0, -EBADMSG for a file in another format, or
 * -errno. */
int load_state_open(struct load_state *s, const char *path,
	const char *trace_path, struct error *err);
void load_state_close(struct load_state *s);

/* Append a consumed batch to the trace, then save the loader's state after the
 * batch. Echo changes before that state are logged first. */
int load_state_used(struct load_state *s, struct refrain_loader *l,
	const struct refrain_batch *b, struct error *err);

/* -- load_list.c -- */

/*
 * Print the paths of the files that the run reads, one in a line, in the order
 * in which it first reads them. A path is that of the dataset with the name of
 * the file in it. Returns 0, -ENOMEM or the error of the output.
 */
int load_list(const struct load_options *o, struct refrain_loader *l,
	struct error *err);

/* -- load_report.c -- */

void load_print(const struct load_options *o, const struct load_result *r);
/* Print one line of JSON: the loader's statistics as refrain_stats_json()
 * writes them, and the results of the command. Returns 0 or -ENOMEM. */
int load_print_json(const struct load_options *o, const struct load_result *r);

#endif

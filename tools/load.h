/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of `refrain load`: its options, its counts, the state it
 * saves and the trace it writes. One thread.
 */
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
	struct refrain_config config; /* without dataset and state */
	bool drop_last, no_hash, json, list;
	unsigned step_ms, timeout_s;
	uint64_t steps; /* 0: to the end of the run */
	const char *state, *trace, *step_log;
	const char *echo_log, *echo_replay;
};

/* The log of echo changes to replay, and the log to write. */
struct load_echo {
	char *replayed; /* path, or NULL */
	const char *path;
	FILE *log; /* file, or NULL */
	uint64_t before,
		written; /* changes by earlier runs; changes in the file */
};

/*
 * The data kept between runs, in two files: the loader's state after the last
 * consumed batch with the length of the trace at that time, and the trace with
 * one line per sample.
 */
struct load_state {
	const char *path, *trace_path; /* or NULL */
	char *fresh_path; /* temporary file, renamed when complete */
	FILE *trace;
	uint64_t trace_bytes;
	struct load_echo *echo;
	unsigned char loader[REFRAIN_STATE_MAX];
	size_t loader_bytes; /* length of the state; 0: from the beginning */
};

/* Room for the loader's statistics as JSON. */
#define LOAD_STATS_JSON_BYTES 8192

/* The results of the run. */
struct load_result {
	uint64_t steps, fresh, served, bytes;
	uint64_t examples, classes;
	uint64_t pixel_hash;
	uint64_t fields_hash; /* of the columns of --fields */
	uint64_t open_ns, first_ns, run_ns;
	struct refrain_stats stats;
	char stats_json[LOAD_STATS_JSON_BYTES]; /* the statistics as JSON */
};

/* -- load_options.c -- */

/* Set err to a message of the loader, with options in place of member names. */
int load_options_say(const char *message, int rc, struct error *err);

/* Check and apply rules that the tables cannot express. Returns 0 or -EINVAL.
 */
int load_options_finish(struct load_options *o, struct error *err);

/* -- load_echo.c -- */

/* Read a log for struct refrain_config. */
int load_echo_replay(struct load_echo *e, const char *path, struct error *err);
/* Open the log for writing. An earlier run has written `before` changes. */
int load_echo_open(struct load_echo *e, const char *path, uint64_t before,
	struct error *err);
/* Write the changes since the last call. */
int load_echo_used(
	struct load_echo *e, struct refrain_loader *l, struct error *err);
void load_echo_close(struct load_echo *e);

/* -- load_state.c -- */

/*
 * Read the state of an earlier run, if there is one, and open the trace at its
 * position. Returns 0, -EBADMSG for a file in another format, or -errno.
 */
int load_state_open(struct load_state *s, const char *path,
	const char *trace_path, struct error *err);
void load_state_close(struct load_state *s);

/* Append a consumed batch to the trace, then save the state after it. The echo
 * changes up to that state are written first. */
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
/* Print one line: the loader's statistics as refrain_stats_json() writes them,
 * and the figures of the command itself. Returns 0 or -ENOMEM. */
int load_print_json(const struct load_options *o, const struct load_result *r);

#endif

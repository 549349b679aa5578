/* SPDX-License-Identifier: MIT */
/*
 * What the files of `refrain load` share: its options, what it has counted,
 * the state that it saves and the trace that it writes. One thread.
 */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/option.h"
#include "config_options.h"
#include "refrain/loader.h"

struct load_options {
	struct refrain_config config; /* all of it but dataset and state */
	bool drop_last, no_hash, json;
	unsigned step_ms, timeout_s;
	uint64_t steps; /* 0: to the end */
	const char *state, *trace, *step_log;
	const char *echo_log, *echo_replay;
};

/* The log of echo changes that is replayed, and the one that is written. */
struct load_echo {
	char *replayed; /* or NULL */
	const char *path;
	FILE *log;		  /* or NULL */
	uint64_t before, written; /* changes: of runs before, in the file */
};

/*
 * What is kept between two runs, in two files: the state of the loader after
 * the last batch that was used, with the length that the trace had then, and
 * the trace, a line a sample.
 */
struct load_state {
	const char *path, *trace_path; /* or NULL */
	char *fresh_path;	       /* where it is written first */
	FILE *trace;
	uint64_t trace_bytes;
	struct load_echo *echo;
	unsigned char loader[REFRAIN_STATE_MAX];
	size_t loader_bytes; /* 0: from the beginning */
};

/* What the command has seen. */
struct load_result {
	uint64_t steps, fresh, served, bytes;
	uint64_t examples, classes;
	uint64_t pixel_hash;
	uint64_t open_ns, first_ns, run_ns;
	struct refrain_stats stats;
};

/* -- load_options.c -- */

/* A message of the loader, with the options in it that members stand for. */
int load_options_say(const char *message, int rc, struct error *err);

/* Check and apply what the tables cannot say; -EINVAL. */
int load_options_finish(struct load_options *o, struct error *err);

/* -- load_echo.c -- */

/* Read a log for struct refrain_config. */
int load_echo_replay(struct load_echo *e, const char *path, struct error *err);
/* Begin to write, after `before` changes that an earlier run has written. */
int load_echo_open(struct load_echo *e, const char *path, uint64_t before,
	struct error *err);
/* Write what was changed since. */
int load_echo_used(
	struct load_echo *e, struct refrain_loader *l, struct error *err);
void load_echo_close(struct load_echo *e);

/* -- load_state.c -- */

/*
 * Read what an earlier run left, if anything, and open the trace where that
 * run was. -EBADMSG for what was not written by it, or -errno.
 */
int load_state_open(struct load_state *s, const char *path,
	const char *trace_path, struct error *err);
void load_state_close(struct load_state *s);

/* Append a batch that was used to the trace, then save the state after it,
 * with the echo changes that it stands for written before it. */
int load_state_used(struct load_state *s, struct refrain_loader *l,
	const struct refrain_batch *b, struct error *err);

/* -- load_report.c -- */

void load_print(const struct load_options *o, const struct load_result *r);
/* One line; -ENOMEM. */
int load_print_json(const struct load_options *o, const struct load_result *r);

#endif

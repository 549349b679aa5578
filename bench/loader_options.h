/* SPDX-License-Identifier: MIT */
/*
 * Shared by the programs that measure the loader: options that select the
 * batches, so that all programs make the same ones, and the processor time and
 * memory of the process. No state, one thread.
 */
#ifndef BENCH_LOADER_OPTIONS_H
#define BENCH_LOADER_OPTIONS_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/option.h"

struct loader_options {
	struct refrain_config config;
	unsigned skip;	/* steps before anything is measured */
	unsigned steps; /* steps in all; 0: the whole run */
	bool hash;	/* hash the content of all batches */
	bool full;	/* bare: time decoding whole images, too */
	bool steady;	/* bare: take skip and steps from the schedule */
};

/* Parse the options. Returns 0, or the exit status after printing what is
 * wrong. */
int loader_options_parse(struct loader_options *o, const char *name,
	const char *summary, int argc, char **argv, bool *done);

/* The start of a measurement, or its duration. */
struct loader_usage {
	/* cpu_ns: of all threads, with the kernel's part */
	uint64_t wall_ns, cpu_ns;
	uint64_t faults; /* number of page faults */
};

void loader_usage_now(struct loader_usage *u);
/* Compute the usage from `*begin` until now, into *begin. */
void loader_usage_since(struct loader_usage *begin);
uint64_t loader_peak_bytes(void);

#endif

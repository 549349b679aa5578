/* SPDX-License-Identifier: MIT */
/*
 * Shared by the programs that measure the loader: options that select the
 * batches, so that all make the same ones, and the processor time and memory of
 * the process. No state, one thread.
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
	bool hash;	/* of all that the batches hold */
	bool full;	/* bare: time decoding whole images, too */
	bool steady;	/* bare: skip and steps as the schedule says */
};

/* 0, or the status to exit with. Says what is wrong on stderr. */
int loader_options_parse(struct loader_options *o, const char *name,
	const char *summary, int argc, char **argv, bool *done);

/* Where a measurement began, or how long it took. */
struct loader_usage {
	uint64_t wall_ns, cpu_ns; /* of all threads, with the kernel's part */
	uint64_t faults;	  /* pages that were mapped */
};

void loader_usage_now(struct loader_usage *u);
/* Compute the usage from `*begin` until now, into *begin. */
void loader_usage_since(struct loader_usage *begin);
uint64_t loader_peak_bytes(void);

#endif

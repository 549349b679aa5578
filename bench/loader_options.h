/* SPDX-License-Identifier: MIT */
/* Shared by the programs that measure the loader. They have the same options to
 * select batches, so they make the same batches. Also measures the processor
 * time and memory of the process. No state, one thread. */
#ifndef BENCH_LOADER_OPTIONS_H
#define BENCH_LOADER_OPTIONS_H

#include <refrain/loader.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/option.h"

struct loader_options {
	struct refrain_config config;
	unsigned skip; /* number of steps before the measurement */
	/* number of steps with the skipped ones; 0: the whole run */
	unsigned steps;
	bool hash; /* hash the content of all batches */
	bool full; /* loader-bare: also measure decoding whole images */
	/* loader-bare: compute `skip` and `steps` from the schedule */
	bool steady;
};

/* Parse the options. Returns 0; or after printing an error, the exit status. */
int loader_options_parse(struct loader_options *o, const char *name,
	const char *summary, int argc, char **argv, bool *done);

/* Usage since the start of the process, or between two calls. */
struct loader_usage {
	/* cpu_ns: time of all threads, in the program and in the kernel */
	uint64_t wall_ns, cpu_ns;
	uint64_t faults; /* number of page faults */
};

void loader_usage_now(struct loader_usage *u);
/* Replace the usage at the begin in *begin by the usage from then until now. */
void loader_usage_since(struct loader_usage *begin);
uint64_t loader_peak_bytes(void);

#endif

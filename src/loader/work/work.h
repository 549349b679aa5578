/* SPDX-License-Identifier: MIT */
/*
 * A worker of the preparation service: makes samples for loaders on other hosts
 * and puts them into a store. It reads on a board which samples are needed,
 * claims ranges of examples there, and reports finished ranges. Nothing depends
 * on a worker: loaders make all samples that no worker delivers in time.
 */
#ifndef WORK_H
#define WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* A dataset that the worker may open. A job contains the name of a dataset,
 * never a path. */
struct work_dataset {
	const char *name, *path;
};

struct work_config {
	/* address of the board, in the form of address_check() */
	const char *board;
	/* address of the store, in the same form; readers connect to it, too */
	const char *store;
	const struct work_dataset *datasets;
	unsigned ndatasets;
	unsigned threads; /* number of hands; 0: one for each processor */
	/* The limit for the decoder's memory of one example; 0: 1 GiB */
	uint64_t memory_bytes;
	const void *secret;
	size_t secret_bytes;
	unsigned exit_idle_s; /* end after this time without work; 0: never */
	/* Called once for a job that this worker cannot prepare, with the name
	 * of its dataset and the reason. May be NULL. */
	void (*refused)(const char *dataset, const char *why);
	/* Once this is set, work_run() finishes the ranges that hands have, and
	 * returns. */
	const _Atomic bool *stop;
};

/* Counts of the work that a worker has done. */
struct work_counts {
	uint64_t ranges;  /* finished ranges */
	uint64_t decodes; /* decoded examples */
	uint64_t samples; /* samples put into the store */
	/* examples that were not made, because the store had their samples */
	uint64_t reused;
	/* ranges that another worker has taken or that are no longer needed */
	uint64_t lost;
	uint64_t refused; /* samples for which the store had no memory */
	uint64_t failed;  /* examples that could not be read or decoded */
	/* number of times that the board or the store did not answer */
	uint64_t away;
};

/*
 * Work until config->stop is set or there was nothing to do for exit_idle_s.
 * Returns 0, or -errno with err set if a dataset cannot be opened, memory is
 * short, or the configuration is wrong. A board or a store that does not answer
 * is no error: the worker waits for it.
 */
int work_run(const struct work_config *config, struct work_counts *counts,
	struct error *err);

#endif

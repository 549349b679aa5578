/* SPDX-License-Identifier: MIT */
/*
 * A worker of the preparation service: makes samples for loaders on other hosts
 * and puts them into a store. It learns from a board what is needed, claims
 * ranges of examples there, and says when they are done. Nothing depends on it:
 * whatever it does not deliver in time, the loaders make themselves.
 */
#ifndef WORK_H
#define WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* A dataset that the worker may open. A job names it, never a path. */
struct work_dataset {
	const char *name, *path;
};

struct work_config {
	const char *board; /* as in address_check() */
	const char *store; /* as in address_check(), for readers, too */
	const struct work_dataset *datasets;
	unsigned ndatasets;
	unsigned threads; /* 0: one for each processor */
	/* The limit for the decoder's memory of one example; 0: 1 GiB */
	uint64_t memory_bytes;
	const void *secret;
	size_t secret_bytes;
	unsigned exit_idle_s; /* end after so long without work; 0: never */
	/* Called once for a job that this worker cannot prepare, with the name
	 * of its dataset and the reason; NULL: nobody is told. */
	void (*refused)(const char *dataset, const char *why);
	/* Finish the ranges in hand and return once this is set. */
	const _Atomic bool *stop;
};

/* What a worker has done. */
struct work_counts {
	uint64_t ranges;  /* finished */
	uint64_t decodes; /* examples decoded */
	uint64_t samples; /* put into the store */
	uint64_t reused;  /* examples whose samples were there already */
	uint64_t lost;	  /* ranges that another has taken, or nobody needs */
	uint64_t refused; /* samples that the store had no memory for */
	uint64_t failed;  /* examples that could not be read or decoded */
	uint64_t away;	  /* times that the board or the store was gone */
};

/*
 * Work until config->stop is set or there was nothing to do for exit_idle_s.
 * Returns 0, or -errno with err set: a dataset cannot be opened, memory is
 * short, or the configuration is wrong. A board or a store that does not answer
 * is no error: the worker waits for it.
 */
int work_run(const struct work_config *config, struct work_counts *counts,
	struct error *err);

#endif

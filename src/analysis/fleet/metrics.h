/* SPDX-License-Identifier: MIT */
/*
 * Prints the statuses of mounts and the views of shares for Prometheus, from
 * the tables of counters, gauges and histograms. The names follow its
 * conventions: base units, and _total for counters. No state.
 */
#ifndef FLEET_METRICS_H
#define FLEET_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What is printed; all of it is borrowed. */
struct metrics {
	bool openmetrics; /* or the text format 0.0.4 of Prometheus */
	bool fleet;	  /* also refrain_up and what concerns this program */
	const struct metrics_mount *mount;
	size_t nmounts;
	/* Objects as of `refrain share --json`; one whose host does not answer
	 * has a name and no step. Each name is there once. NULL: none. */
	const json_t *shares;
};

struct metrics_mount {
	const char *mountpoint; /* escaped: see escape_name() */
	const json_t *status;	/* NULL: it is not up */
	bool refused;		/* it may not be asked */
};

/* Errors stay with the stream. */
void metrics_print(FILE *to, const struct metrics *m);

#endif

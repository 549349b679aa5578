/* SPDX-License-Identifier: MIT */
/* Prints the statuses of mounts and the views of shares for Prometheus, from
 * the tables of counters, gauges and histograms. The names follow the
 * conventions of Prometheus: base units, and _total for counters. No state. */
#ifndef FLEET_METRICS_H
#define FLEET_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What to print. The caller owns everything. */
struct metrics {
	/* OpenMetrics; otherwise the text format 0.0.4 of Prometheus */
	bool openmetrics;
	bool fleet; /* also print refrain_up, and metrics of this program */
	const struct metrics_mount *mount;
	size_t nmounts;
	/* Objects like those of `refrain share --json`. If the host of a share
	 * does not answer, its object has a name and no step. Each name occurs
	 * once. NULL: none. */
	const json_t *shares;
};

struct metrics_mount {
	const char *mountpoint; /* escaped by escape_name() */
	const json_t *status;	/* NULL: the mount is not up */
	bool refused;		/* this user may not ask the mount */
};

/* Print the metrics. If this fails, ferror(to) is set. */
void metrics_print(FILE *to, const struct metrics *m);

#endif

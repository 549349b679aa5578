/* SPDX-License-Identifier: MIT */
/*
 * The gauges of a status as data: for Prometheus and the manual page.
 */
#ifndef DAEMON_GAUGES_H
#define DAEMON_GAUGES_H

struct gauge {
	const char *name; /* also in the JSON object */
	const char *unit, *help;
};

/* The gauges of the mount, of each tier and of each peer. All end with name
 * NULL. */
extern const struct gauge gauge_table[], tier_gauge_table[], peer_gauge_table[];

#endif

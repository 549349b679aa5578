/* SPDX-License-Identifier: MIT */
/*
 * Tables of the gauges in the status, for Prometheus and the manual page.
 */
#ifndef DAEMON_GAUGES_H
#define DAEMON_GAUGES_H

struct gauge {
	const char *name; /* name, which is also that of the JSON member */
	const char *unit, *help;
};

/* The gauges of the mount, of each tier and of each peer. Each table ends with
 * an element whose name is NULL. */
extern const struct gauge gauge_table[], tier_gauge_table[], peer_gauge_table[];

#endif

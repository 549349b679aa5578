/* SPDX-License-Identifier: MIT */
/* The tables of gauges; constant data. */
#include "ctl/gauges.h"

#include <stddef.h>

const struct gauge gauge_table[] = {
	{"uptime_s", "seconds", "Time since the mount."},
	{"files_known", "files", "Files in the manifest."},
	{"bytes_known", "bytes", "Their size."},
	{"scan_complete", "0 or 1", "Whether the source has been listed."},
	{"unlisted_directories", "directories",
		"Those that the last scan of the source could not list."},
	{"ready", "0 or 1", "Whether the cache directories have been read."},
	{"cache_capacity_bytes", "bytes", "What all tiers may hold."},
	{"cache_used_bytes", "bytes",
		"What the entries are charged: content and trailer in the "
		"tier's blocks."},
	{"resident_bytes", "bytes", "Content bytes of the entries."},
	{"entries", "entries", "Items in the cache."},
	{"inflight", "requests", "Fetches from the origin that are running."},
	{"surplus_depth", "requests",
		"Fetches ahead of readers that are kept running, at most."},
	{"parked", "reads", "READs that wait for the origin."},
	{"staging_bytes", "bytes", "Content in the staging buffer."},
	{"staging_peak_bytes", "bytes", "The most that ever was in it."},
	{"staging_capacity_bytes", "bytes", "The bound of the staging buffer."},
	{"plans", "plans", "Orders that trainers have told, and follow."},
	{"planned_positions", "positions",
		"Files in them that were neither read nor given up."},
	{"planned_bytes", "bytes",
		"Items that were fetched ahead for plans, or will be next."},
	{"planned_capacity_bytes", "bytes",
		"The part of the staging buffer that plans may have."},
	{"memory_rss_bytes", "bytes", "Resident memory of the daemon."},
	{"open_fds", "descriptors", "Open descriptors of the daemon."},
	{"prefetch_window_bytes", "bytes",
		"How far ahead of a reader is fetched, at most."},
	{"read_ahead_kib", "KiB", "What the kernel reads ahead on the mount."},
	{NULL, NULL, NULL},
};

const struct gauge tier_gauge_table[] = {
	{"capacity_bytes", "bytes", "What the tier may hold."},
	{"used_bytes", "bytes", "What its entries are charged."},
	{"reserved_bytes", "bytes",
		"Room that is promised to items on their way."},
	{"resident_bytes", "bytes", "Content bytes of its entries."},
	{"entries", "entries", "Items in it."},
	{"tier_errors", "operations",
		"Writes, reads and deletions in it that failed."},
	{NULL, NULL, NULL},
};

/* SPDX-License-Identifier: MIT */
/* The tables of gauges; constant data. */
#include "ctl/gauges.h"

#include <stddef.h>

const struct gauge gauge_table[] = {
	{"uptime_s", "seconds", "Time since the mount started."},
	{"files_known", "files", "Files in the manifest."},
	{"bytes_known", "bytes", "Their size."},
	{"scan_complete", "0 or 1", "Whether the source has been listed."},
	{"unlisted_directories", "directories",
		"Directories that the last scan of the source could not list."},
	{"ready", "0 or 1", "Whether the cache directories have been read."},
	{"cache_capacity_bytes", "bytes", "Capacity of all tiers."},
	{"cache_used_bytes", "bytes",
		"Space used by the entries: content and trailer in the tier's "
		"blocks."},
	{"resident_bytes", "bytes", "Content bytes of the entries."},
	{"entries", "entries", "Items in the cache."},
	{"inflight", "requests", "Fetches from the origin in flight."},
	{"surplus_depth", "requests",
		"Fetches to keep in flight while some are ahead of readers."},
	{"parked", "reads", "READs waiting for the origin."},
	{"staging_bytes", "bytes", "Content in the staging buffer."},
	{"staging_peak_bytes", "bytes", "Peak content of the staging buffer."},
	{"staging_capacity_bytes", "bytes",
		"Maximum size of the staging "
		"buffer."},
	{"plans", "plans", "Plans from trainers that are being followed."},
	{"planned_positions", "positions",
		"Files in these plans that are still to be read."},
	{"planned_bytes", "bytes",
		"Items that were or will soon be fetched ahead for plans."},
	{"planned_capacity_bytes", "bytes",
		"Part of the staging buffer that plans may use."},
	{"peer_pushes_dropped", "items",
		"Items not pushed to the peers because too many were on "
		"their way. Shown with --peers only."},
	{"peers_hold_all", "0 or 1",
		"Whether the peers can hold the whole dataset, so that tiers "
		"keep copies. Shown with --peers only."},
	{"epoch", "number",
		"Epoch that the readers are in, counted by the misses. This "
		"gauge and those below of the epoch are absent while they are "
		"not known."},
	{"epoch_done_pct", "percent", "Share of the epoch that was read."},
	{"epoch_expected_hits_pct", "percent",
		"Share of the epoch's bytes that was resident when it began."},
	{"epoch_hits_pct", "percent",
		"Share of the bytes read in the epoch so far that hit."},
	{"epoch_waited_pct", "percent",
		"Share of the epoch's time in which at least one READ waited "
		"for the origin."},
	{"epoch_ms", "milliseconds", "Duration of an epoch."},
	{"larger_cache_bytes", "bytes",
		"Content of a cache with which half as many bytes would miss."},
	{"larger_cache_least_ms", "milliseconds",
		"Shortest epoch to expect with that cache."},
	{"larger_cache_most_ms", "milliseconds",
		"Longest epoch to expect with that cache."},
	{"whole_cache_bytes", "bytes",
		"Content of a cache that holds everything that is read."},
	{"whole_cache_least_ms", "milliseconds",
		"Shortest epoch to expect with that cache."},
	{"whole_cache_most_ms", "milliseconds",
		"Longest epoch to expect with that cache."},
	{"memory_rss_bytes", "bytes", "Resident memory of the daemon."},
	{"open_fds", "descriptors", "Open descriptors of the daemon."},
	{"prefetch_window_bytes", "bytes",
		"Maximum distance that is fetched ahead of a reader."},
	{"read_ahead_kib", "KiB", "The kernel's read-ahead on the mount."},
	{NULL, NULL, NULL},
};

const struct gauge tier_gauge_table[] = {
	{"capacity_bytes", "bytes", "Capacity of the tier."},
	{"used_bytes", "bytes", "Space used by its entries."},
	{"reserved_bytes", "bytes", "Space reserved for items being fetched."},
	{"resident_bytes", "bytes", "Content bytes of its entries."},
	{"entries", "entries", "Items in the tier."},
	{"tier_errors", "operations",
		"Failed writes, reads and deletions in the tier."},
	{NULL, NULL, NULL},
};

const struct gauge peer_gauge_table[] = {
	{"up", "0 or 1", "Whether the peer is in use."},
	{"used_bytes", "bytes", "Memory in use by all values of its server."},
	{"capacity_bytes", "bytes", "Memory of its server (-m)."},
	{"evictions", "values",
		"Values that its server removed for others; anything but 0 is "
		"a fault."},
	{"items", "values", "Values in its server, of any dataset."},
	{"hits", "units", "Units of 256 KiB or less read from it."},
	{"hit_bytes", "bytes", "Content bytes of these."},
	{"misses", "reads", "Reads that it did not answer in full."},
	{"fills", "units", "Units pushed to it and acknowledged."},
	{"fill_bytes", "bytes", "Content bytes of these."},
	{"refused", "units", "Units that it had no memory for."},
	{"bad", "units", "Units with a wrong length or checksum."},
	{"errors", "requests",
		"Requests that failed: time-outs, lost connections, wrong "
		"answers."},
	{"dropped", "units",
		"Units not pushed because it was down or had refused others."},
	{NULL, NULL, NULL},
};

/* SPDX-License-Identifier: MIT */
/*
 * The tables of the gauges. All data is constant.
 */
#include "mount/daemon/gauges.h"

#include <stddef.h>

const struct gauge gauge_table[] = {
	{"uptime_s", "seconds", "Time since the mount started."},
	{"files_known", "files", "Files in the manifest."},
	{"bytes_known", "bytes", "Size of the files in the manifest."},
	{"scan_complete", "0 or 1", "Whether the source has been listed."},
	{"unlisted_directories", "directories",
		"Directories that the last scan of the source could not list."},
	{"ready", "0 or 1", "Whether the cache directories have been read."},
	{"cache_capacity_bytes", "bytes", "Capacity of all tiers."},
	{"cache_used_bytes", "bytes",
		"Space used by the entries: content and trailer, rounded up to "
		"the tier's blocks."},
	{"resident_bytes", "bytes", "Content bytes of the entries."},
	{"entries", "entries", "Items in the cache."},
	{"inflight", "requests", "Fetches from the origin in flight."},
	{"surplus_depth", "requests",
		"Number of origin requests to keep in flight while fetching "
		"ahead of readers."},
	{"parked", "reads", "READs waiting for the origin."},
	{"parked_longest_ms", "milliseconds",
		"Time for which the first of these READs has waited."},
	{"origin_waiting", "requests",
		"Requests that the origin has not answered; retries of one are "
		"the same request."},
	{"origin_silent_ms", "milliseconds",
		"Time since the origin last sent anything, while requests "
		"wait for it; otherwise 0."},
	{"errors_present", "errors",
		"Causes of errors that have not ended; 'refrain status' shows "
		"them."},
	{"staging_bytes", "bytes", "Content in the staging buffer."},
	{"staging_peak_bytes", "bytes", "Peak content of the staging buffer."},
	{"staging_capacity_bytes", "bytes",
		"Maximum size of the staging "
		"buffer."},
	{"plans", "plans", "Plans from trainers that are being followed."},
	{"plans_admitting", "plans",
		"Plans that let the cache admit only files that plans name."},
	{"planned_positions", "positions",
		"Files in these plans that are still to be read."},
	{"planned_bytes", "bytes",
		"Size of the items fetched ahead for plans, or about to be."},
	{"planned_capacity_bytes", "bytes",
		"Part of the staging buffer that plans may use."},
	{"peer_pushes_dropped", "items",
		"Items not pushed to the peers because too many pushes were in "
		"flight. Shown with --peers only."},
	{"peers_hold_all", "0 or 1",
		"Whether the peers can hold the whole dataset; tiers then keep "
		"copies of the peers' items. Shown with --peers only."},
	{"peers_differ", "0 or 1",
		"Whether the peers hold another dataset under the name of this "
		"one; they are then not used. Shown with --peers only."},
	{"epoch", "number",
		"Number of the epoch that the readers are in, derived from the "
		"misses. The gauges of epochs and cache sizes are absent while "
		"they are unknown."},
	{"epoch_done_pct", "percent", "Share of the epoch that has been read."},
	{"epoch_expected_hits_pct", "percent",
		"Share of the epoch's bytes that was in the cache when it "
		"began."},
	{"epoch_hits_pct", "percent",
		"Share of the bytes read in this epoch that came from the "
		"cache."},
	{"epoch_waited_pct", "percent",
		"Share of the epoch's time during which at least one READ "
		"waited for the origin."},
	{"epoch_origin_bytes", "bytes",
		"Content bytes that the origin has delivered in this epoch, "
		"items fetched ahead included."},
	{"epoch_ms", "milliseconds",
		"Duration of the last epoch, or of this one as estimated from "
		"its first half."},
	{"larger_cache_bytes", "bytes",
		"Size of the cache that would halve the bytes that miss."},
	{"larger_cache_least_ms", "milliseconds",
		"Estimated minimum duration of an epoch with a cache of "
		"larger_cache_bytes."},
	{"larger_cache_most_ms", "milliseconds",
		"Estimated maximum duration of an epoch with a cache of "
		"larger_cache_bytes."},
	{"whole_cache_bytes", "bytes",
		"Size of the cache that would hold everything that is read."},
	{"whole_cache_least_ms", "milliseconds",
		"Estimated minimum duration of an epoch with a cache of "
		"whole_cache_bytes."},
	{"whole_cache_most_ms", "milliseconds",
		"Estimated maximum duration of an epoch with a cache of "
		"whole_cache_bytes."},
	{"memory_rss_bytes", "bytes", "Resident memory of the daemon."},
	{"open_fds", "descriptors", "Open descriptors of the daemon."},
	{"prefetch_window_bytes", "bytes",
		"Maximum number of bytes fetched ahead of a sequential "
		"reader."},
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
	{"used_bytes", "bytes", "Memory that all values of its server use."},
	{"capacity_bytes", "bytes", "Memory of its server (-m)."},
	{"evictions", "values",
		"Values that its server evicted; anything but 0 means a wrong "
		"configuration."},
	{"items", "values", "Values in its server, of any dataset."},
	{"hits", "units", "Units of 256 KiB or less read from it."},
	{"hit_bytes", "bytes", "Content bytes of these."},
	{"misses", "reads", "Reads that it did not answer in full."},
	{"fills", "units", "Units pushed to it and acknowledged."},
	{"fill_bytes", "bytes", "Content bytes of these."},
	{"refused", "units",
		"Units that it refused because its memory is "
		"full."},
	{"bad", "units", "Units with a wrong length or checksum."},
	{"foreign", "units",
		"Units not used because a mount of another dataset had stored "
		"them."},
	{"errors", "requests",
		"Requests that failed: time-outs, lost connections and invalid "
		"answers."},
	{"dropped", "units",
		"Units not pushed because it was down or had refused others."},
	{NULL, NULL, NULL},
};

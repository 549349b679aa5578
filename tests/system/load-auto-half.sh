#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load --echo auto` on a mount that has half of the dataset cached: the
# factor follows R, which is halved; everything that is fetched is used, and
# only missing bytes are fetched.
set -eu
name=load-auto-half
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-auto-lib.sh
. "$(dirname "$0")/load-auto-lib.sh"

# half_cached: check a run with half of the dataset cached, which halves R. With
# 64 reads at a time and this delay, the 16 misses of a batch take 1.3 steps.
half_cached() {
	slow_mount "$1" "$((images * 2))K" --limit 64K --chunk 64K \
		--pages 64K --staging 1M
	"$refrain" fault "$mnt" delay=$((8 * $1))ms || fail 'cannot set a fault'
	rm -f "$work/log"
	load "$mnt" --echo auto --echo-log "$work/log" --step-ms "$1" \
		--epochs 3
	expect 'wasted' "$(status_field prefetch_wasted)" 0
	# Bytes that were cached before their first read came from the origin
	# and were hits as well. The kernel may drop pages and ask for them
	# again.
	came=$(($(status_field origin_bytes) - $(status_field reread_bytes) +
		$(status_field prefetch_carried_bytes) +
		$(status_field hit_bytes) + $(status_field direct_hit_bytes) -
		$(status_field admitted_unread_bytes)))
	[ $came -eq "$(value bytes_read)" ] || {
		note "$came bytes came or were cached, $(value bytes_read) read"
		return 1
	}
	follows_mount 2 "$1"
}
slower half_cached 5 10 20 40
note "half is cached: e $e, stalled $(value stall_pct) %"

stop_mount

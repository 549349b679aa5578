#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Planned epochs on a throttled source, half of which fits into the cache: each
# epoch fetches exactly the bytes that are not cached, and all of them are used.
set -eu
name=plan-throttled
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/plan-lib.sh
. "$(dirname "$0")/plan-lib.sh"

half_fits
throttle
for epoch in 1 2 3; do
	order $epoch >"$work/order"
	rest=$((size * files - $(status_field resident_bytes)))
	count
	begin "$work/order" --epoch $epoch --batch 16
	train "$work/order" --step-ms 20 --threads 4
	ended
	expect "bytes of epoch $epoch" "$(counted origin_bytes)" $rest
	expect 'items wasted' "$(counted prefetch_wasted)" 0
	expect 'items dropped' "$(counted staging_dropped)" 0
	expect 'positions' "$(planned positions)" $files
	expect 'positions done' "$(planned "done")" $files
	expect 'wasted of the plan' "$(planned wasted_items)" 0
	note "epoch $epoch: $rest bytes in $seconds s"
done
expect 'items used' "$(status_field prefetch_used)" \
	"$(status_field prefetch_issued)"
peak=$(status_field staging_peak_bytes)
[ "$peak" -le $((2 << 20)) ] || fail "staging came to $peak"
[ "$(status_field prefetch_issued)" -gt $((files / 4)) ] ||
	fail 'hardly anything was fetched ahead'
stop_mount

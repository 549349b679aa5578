#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain warm` that is interrupted leaves what it has cached, and the next one
# goes on there: nothing is fetched twice.
set -eu
name=command-warm-interrupted
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/command-lib.sh
. "$(dirname "$0")/command-lib.sh"

mounted "$work/cache:100M"
warm 0 d3
some_more() {
	n=$(status_field entries)
	[ "$n" -gt $((first + 10)) ]
}
first=$(status_field entries)
# Half of the requests hang: it cannot come to an end.
"$refrain" fault "$mnt" stall=0.5,seed=3
"$refrain" warm "$mnt" >"$work/out" 2>&1 &
warming=$!
wait_for 10 some_more || fail 'warming makes no progress'
kill -TERM $warming
wait $warming && fail 'an interrupted warming is no success'
# What is out comes back; slowly, for it looks for us five times a second.
"$refrain" fault "$mnt" rate=2M
wait_for 10 has_status inflight 0 || fail 'it goes on by itself'
"$refrain" fault "$mnt" ''
part=$(status_field entries)
[ "$part" -lt "$all_items" ] || fail 'it was not interrupted'
warm 0
[ "$(warmed already_items)" -ge "$part" ] || fail 'it begins anew'
expect 'items cached' "$(warmed cached_items)" "$all_items"
expect 'bytes from the origin' "$(status_field origin_bytes)" "$all"
note "interrupted at $part of $all_items items, none fetched twice"
drop_caches
sums_right "$sums" "$mnt"
expect misses "$(status_field misses)" 0
stop_mount

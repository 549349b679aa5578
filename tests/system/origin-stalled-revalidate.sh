#!/bin/sh
# SPDX-License-Identifier: MIT
#
# With --revalidate and an origin that hangs, look-ups of names that must be
# checked wait once, and for less than the time-out of a request. Not every
# look-up waits.
set -eu
name=origin-stalled-revalidate
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount
# shellcheck source=tests/system/origin-stalled-lib.sh
. "$(dirname "$0")/origin-stalled-lib.sh"

start_mount "$src" "$mnt" --cache "$work/cache:100M" --fault '' --revalidate 1
scan_through
hit=$(head -n 1 "$work/hits")
epoch() {
	timeout $((20 * patience)) "$reader" "$mnt" --files-from "$work/hits" \
		--json >"$work/epoch" || fail "$1: $(cat "$work/epoch")"
}
is_asked_again() {
	stat "$mnt/$hit" >"$work/stat"
	[ "$(status_field origin_stats)" -gt "$asked" ]
}
epoch before
asked=$(status_field origin_stats)
"$refrain" fault "$mnt" stall=1,meta=1
wait_for 20 is_asked_again || fail 'nobody asks'
begin_s=$(date +%s)
for round in 1 2 3; do
	epoch "round $round while it hangs"
done
took=$(($(date +%s) - begin_s))
note "while nothing answers: 600 hits in $took s"
[ $took -le $((8 * patience)) ] || fail "hits wait: $took s"
"$refrain" fault "$mnt" ''
echo other >"$work/new"
mv "$work/new" "$src/$hit"
wait_for 20 cmp -s "$src/$hit" "$mnt/$hit" || fail 'a change is not seen'
stop_mount

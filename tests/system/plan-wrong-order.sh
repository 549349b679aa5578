#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Plans that their readers do not follow: at most as many bytes as a plan may
# have in memory are fetched without use, and only once.
set -eu
name=plan-wrong-order
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/plan-lib.sh
. "$(dirname "$0")/plan-lib.sh"

half_cached
order 4 >"$work/order"
awk 'NR % 2' "$work/order" >"$work/rank.0"
awk 'NR % 2 == 0' "$work/order" >"$work/rank.1"

# Only every third file of the order is read.
awk 'NR % 3 == 0' "$work/order" >"$work/third"
count
begin "$work/order" --slack 4
train "$work/third" --threads 2
drop_plan
note "of a wrong order $(counted prefetch_wasted) items were wasted"

# An order of files that nobody reads fetches as many bytes as a plan may have
# in memory, once.
window=$(status_field planned_capacity_bytes)
is_held() {
	[ "$(status_field planned_bytes)" -gt $((window - 2 * size)) ]
}
count
begin "$work/rank.0"
wait_for 20 is_held || fail 'it is not fetched ahead'
(cd "$mnt" && xargs cat) <"$work/rank.1" >"$work/read.1"
expect 'bytes beside a plan of others' "$(wc -c <"$work/read.1")" \
	$((size * files / 2))
drop_plan
wasted=$(($(counted prefetch_wasted) * size))
note "of an order that nobody reads $wasted bytes were wasted"
if [ $wasted -eq 0 ] || [ $wasted -gt "$window" ]; then
	fail "$wasted bytes of $window were wasted"
fi
stop_mount

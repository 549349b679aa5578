#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Plans of two ranks, and a reader without a plan at the same time: hardly any
# file is fetched more than once.
set -eu
name=plan-ranks
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/plan-lib.sh
. "$(dirname "$0")/plan-lib.sh"

half_cached
order 4 >"$work/order"
awk 'NR % 2' "$work/order" >"$work/rank.0"
awk 'NR % 2 == 0' "$work/order" >"$work/rank.1"
order 5 >"$work/strange"
rest=$((size * files - $(status_field resident_bytes)))
count
dropped=$(drops)
"$refrain" plan "$mnt" --batch 8 <"$work/rank.0" >"$work/out.0" &
one=$!
"$refrain" plan "$mnt" --batch 8 --step-ms 20 <"$work/rank.1" >"$work/out.1" &
two=$!
wait_for 10 has_status plans 2 || fail 'no two plans'
# The reader without a plan leaves its files in the kernel's cache, as ordinary
# programs do.
sed "s|^|$mnt/|" "$work/strange" | xargs cat >/dev/null &
stranger=$!
(cd "$mnt" && xargs cat) <"$work/rank.0" | wc -c >"$work/read.0" &
third=$!
(cd "$mnt" && xargs cat) <"$work/rank.1" | wc -c >"$work/read.1"
wait $third
wait $stranger
expect 'bytes of both ranks' \
	$(($(cat "$work/read.0") + $(cat "$work/read.1"))) $((size * files))
kill $one $two 2>/dev/null || :
wait $one || :
wait $two || :
no_plan
expect 'items dropped' "$(counted staging_dropped)" 0
if [ "$(drops)" -ne "$dropped" ]; then
	note 'somebody dropped the kernel caches: the bytes are not looked at'
else
	# Sometimes the kernel reads a page of a file again, if several programs
	# read the file at the same time. This also happens without plans.
	more=$(($(counted origin_bytes) - rest))
	note "three readers at once: $rest bytes and $more more," \
		"$(counted prefetch_wasted) items wasted"
	few=$((files / 20)) wasted=$(counted prefetch_wasted)
	if [ $more -gt $((size * (few + wasted))) ] || [ "$wasted" -gt $few ]
	then
		fail 'items are fetched more than once'
	fi
fi
stop_mount

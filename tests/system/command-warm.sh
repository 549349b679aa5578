#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain warm` caches all items exactly once, or those of the paths that it is
# given, and says so; names that do not exist are refused.
set -eu
name=command-warm
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/command-lib.sh
. "$(dirname "$0")/command-lib.sh"

mounted "$work/cache:100M"
warm 0
expect 'items cached' "$(warmed cached_items)" "$all_items"
expect 'bytes cached' "$(warmed cached_bytes)" "$all"
expect 'items before' "$(warmed already_items)" 0
expect 'items without room' "$(warmed not_fitting_items)" 0
expect 'files' "$(warmed files)" $files
expect 'resident bytes' "$(status_field resident_bytes)" "$all"
expect 'entries' "$(status_field entries)" "$all_items"
expect 'bytes from the origin' "$(status_field origin_bytes)" "$all"
warm 0
expect 'items before' "$(warmed already_items)" "$all_items"
expect 'bytes from the origin' "$(status_field origin_bytes)" "$all"
sums_right "$src.sums" "$mnt"
expect 'misses of what was warmed' "$(status_field misses)" 0
ends 0 "$all_items items (.*) are cached, $all_items of them were" warm "$mnt"
ends 1 "cannot warm 'nowhere': the source has no such name" warm "$mnt" nowhere
ends 1 "cannot warm 'd1/nowhere': the source has no such name" \
	warm "$mnt" d1/nowhere
ends 1 . warm "$mnt" ../src
ends 1 . warm "$mnt" d1/../../src
stop_mount

# -- By path
mounted "$work/paths:100M"
warm 0 d3 d4/e1 "$mnt/d5/e0/"
expect 'items of three paths' "$(warmed cached_items)" \
	"$(items "$src/d3" "$src/d4/e1" "$src/d5/e0")"
expect 'resident bytes' "$(status_field resident_bytes)" \
	$(($(tree_bytes "$src/d3") + $(tree_bytes "$src/d4/e1") +
		$(tree_bytes "$src/d5/e0")))
warm 0 d3 d3/e0 "$mnt/d3"
expect 'items of a path and one below it' "$(warmed already_items)" \
	"$(items "$src/d3")"
{
	echo nowhere
	find "$mnt/d5" -type f
	echo d5/nothing
	find "$mnt/d5" -type f
	echo d6
} | {
	if "$refrain" warm "$mnt" - --json >"$work/list" 2>"$work/err"; then
		fail 'unknown names were accepted'
	fi
}
expect 'items of a list' "$(sed -n \
	's/.*"cached_items": *\([0-9]*\).*/\1/p' "$work/list")" \
	"$(items "$src/d5" "$src/d6")"
grep -q "warm 2 paths, the first is 'nowhere': the source has no such name" \
	"$work/err" || fail "$(cat "$work/err")"
file=$(cd "$src" && find d6 -type f -size +200k | sort | head -n 1)
warm 0 "$file"
expect 'items of one file' "$(warmed cached_items)" "$(items "$src/$file")"
stop_mount

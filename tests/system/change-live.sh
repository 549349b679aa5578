#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files that change at the origin under a live mount: nothing is seen of it
# until a refresh, or for as long as --revalidate says, and then all of it;
# no reader sees a mixture of versions, and an origin that does not answer has
# deleted nothing. change_live.py has the steps.
set -eu
name=changes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3

# part NAME OPTION ...: that part of change_live.py, on a mount with options.
part() {
	part=$1
	shift
	rm -rf "$src" "$work/cache"
	mkdir "$src"
	python3 "$(dirname "$0")/change_live.py" prepare "$src" "$mnt" \
		"$refrain" ||
		fail 'cannot prepare'
	start_mount "$src" "$mnt" --cache "$work/cache:200M" --limit 1M \
		--chunk 256K --fault '' "$@"
	scan_through
	python3 "$(dirname "$0")/change_live.py" "$part" "$src" "$mnt" \
		"$refrain" >"$work/said" || fail "$part: $(cat "$work/said")"
	note "$part: $(cat "$work/said")"
	expect evictions "$(status_field evictions)" 0
	stop_mount
}

part refresh
part miss
part descriptor
part race
part revalidate --revalidate 1
part race --revalidate 1 --fault rate=100M
part unreachable --timeout 1

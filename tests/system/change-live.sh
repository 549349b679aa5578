#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files that change at the origin under a live mount: readers see the old
# versions until a refresh, or for the time of --revalidate, and then all
# changes. No reader sees a mixture of versions. An origin that does not answer
# does not count as one without files. change_live.py has the steps.
set -eu
name=changes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3

# part NAME OPTION ...: run part NAME of change_live.py on a mount with these
# options.
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

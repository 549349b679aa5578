#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A file with more items than any loop can visit: reads near its end are right,
# and all work on its items ends with the mount.
set -eu
name=huge-file
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse truncate

# Few file systems accept such a size.
src=$short/src
mkdir "$src"
truncate -s 1000000000000000000 "$src/huge" 2>/dev/null ||
	skip "no file system for a file of 10^18 bytes"

start_mount "$src" "$mnt" --cache "$work/cache:10M"
[ "$(stat -c %s "$mnt/huge")" = 1000000000000000000 ] || fail 'its size'
[ "$(tail -c 100000 "$mnt/huge" | tr -d '\0' | wc -c)" = 0 ] ||
	fail 'its end is not all zeros'
stop_mount

# The thread that handles changes also ends.
start_mount "$src" "$mnt" --cache "$work/cache:10M"
stat "$mnt/huge" >/dev/null || fail 'it is not there'
rm "$src/huge"
timeout 0.5 "$refrain" refresh "$mnt" >/dev/null 2>&1 || :
kill -TERM "$daemon"
daemon_ended

# The scan of such a source ends at once, and finds old entries of other files.
echo small >"$src/small"
echo other >"$src/other"
truncate -s 1000000000000000000 "$src/huge"
start_mount "$src" "$mnt" --cache "$work/tier:10M"
scan_through
cat "$mnt/small" "$mnt/other" >/dev/null
wait_for 10 has_status entries 2 || fail 'not all are cached'
stop_mount
echo changed >"$src/small"
start_mount "$src" "$mnt" --cache "$work/tier:10M"
scan_through
"$refrain" refresh "$mnt" >/dev/null
wait_for 10 has_status entries 1 || fail 'the old version is still there'
before=$(awk '{ print $14 + $15 }' "/proc/$daemon/stat")
"$refrain" warm "$mnt" small other >/dev/null
after=$(awk '{ print $14 + $15 }' "/proc/$daemon/stat")
[ $((after - before)) -lt 100 ] || fail 'it goes through all items'
stop_mount

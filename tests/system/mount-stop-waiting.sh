#!/bin/sh
# SPDX-License-Identifier: MIT
#
# SIGTERM while a look-up waits for an origin that hangs, and a notification of
# the daemon waits for a lock of the kernel that the look-up holds: both are
# released, and the daemon ends within seconds.

set -eu
name=stop-waiting
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse

# A daemon whose origin hangs does not join its threads; they end with the
# process.
TSAN_OPTIONS="${TSAN_OPTIONS:-} report_thread_leaks=0"
export TSAN_OPTIONS

mkdir "$src/dir"
echo old >"$src/dir/changes"
start_mount "$src" "$mnt" --cache "$work/cache:1M" --revalidate 1 --fault ''
cat "$mnt/dir/changes" >"$work/out"

# The kernel does not know this name, so it locks the directory for the look-up.
asked=$(status_field origin_stats)
"$refrain" fault "$mnt" meta=1,stall=1,match=hangs || fail 'no fault'
stat "$mnt/dir/hangs" >"$work/stat.out" 2>&1 &
looker=$!
has_asked() {
	[ "$(status_field origin_stats)" -gt "$asked" ]
}
wait_for 20 has_asked || fail 'no look-up waits'

echo new and longer >"$src/dir/changes"
"$refrain" refresh "$mnt" dir >"$work/refresh.out" 2>&1 &
refresher=$!
wait_for 20 has_status invalidated 1 || fail 'the change was not seen'

kill -TERM "$daemon"
daemon_ended
wait "$looker" "$refresher" || :
[ -z "$(mounts_below "$work")" ] || fail 'the mount is still there'

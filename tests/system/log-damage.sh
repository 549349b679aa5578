#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The daemon's log of tiers: entries that were damaged or deleted, a directory
# that was deleted, and a cache that is full.
set -u
name='log-damage'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3
# shellcheck source=tests/system/log-lib.sh
. "$(dirname "$0")/log-lib.sh"

mount_logged --cache "$work/second:100K"
epoch || fail 'an epoch'
wait_for 20 has_status entries 20 || fail 'the cache does not get all files'
stop_mount
entry=$(find "$cache" -path "$cache*/??/*" -type f | head -n 1)
printf 'x' | dd of="$entry" bs=1 seek=100 conv=notrunc 2>/dev/null
other=$(find "$cache" -path "$cache*/??/*" -type f | tail -n 1)
mount_logged --cache "$work/second:100K"
rm "$other"
epoch || fail 'an epoch with damage'
must_log "warning: entry '../.*' of cache '$cache' was damaged"
must_log "warning: entry '../.*' of cache '$cache' was deleted by another"
expect 'damaged entries' "$(status_field checksum_errors)" 1
rm -rf "$cache"
for i in 20 21 22; do
	head -c 20000 /dev/urandom >"$src/f$i"
done
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
epoch || fail 'an epoch without the directory'
must_log "error: cache directory '$cache' was deleted; unmount, and mount again"
stop_mount

rm -rf "$log" "$work/second"
start_mount "$src" "$mnt" --cache "$cache:100K" --log-file "$log"
epoch || fail 'an epoch'
must_log "notice: cache '$cache' is full; nothing is evicted"
expect 'messages of a full cache' "$(grep -c 'is full' "$log")" 1
stop_mount

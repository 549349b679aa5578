#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount that dies during a run: examples in the tier are still read, and the
# others are filled with zeros.
set -eu
name=load-dead-mount
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

# The tier has room for half of the dataset.
half_mount
load "$mnt/train"
stop_mount
# The kernel's pages of a mount outlive the daemon, so use a new mount.
half_mount
reads=$(mount_reads)
timeout 120 "$refrain" load "$mnt/train" --batch 4 --reads-ahead 8 \
	--batches-ahead 2 --step-ms 10 --epochs 4 --timeout 20 \
	--policy zero --max-damage 1 --size 32 --json >"$work/json" \
	2>"$work/err" &
loader=$!
some_reads() {
	[ "$(mount_reads)" -ge $((reads + 20)) ]
}
wait_for 20 some_reads || fail 'the loader does not start'
kill_mount
status=0
wait $loader || status=$?
expect 'exit status when the mount dies' $status 0
expect 'served when the mount dies' "$(value served)" $((4 * images))
[ "$(value direct_hits)" -gt 0 ] || fail 'no direct hits when the mount dies'
[ "$(value zero_filled)" -gt 0 ] ||
	fail "nothing was filled in: $(cat "$work/json")"
note "dead: $(value direct_hits) direct, $(value zero_filled) filled in"
umount -l "$mnt"

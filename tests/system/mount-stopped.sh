#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A stopped daemon: commands say within seconds what to do, and the daemon ends
# normally when it continues.
set -eu
name=mount-stopped
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse
# shellcheck source=tests/system/mount-umount-lib.sh
. "${srcdir:-.}/tests/system/mount-umount-lib.sh"

in_background
stop_process "$pid"
for c in status umount; do
	begun=$(date +%s)
	! "$refrain" $c "$mnt" 2>"$work/err" || fail "$c of a stopped daemon"
	took=$(($(date +%s) - begun))
	[ $took -le $((8 * patience)) ] || fail "$c takes $took s"
	complains "$mnt" "(process $pid) is stopped" "kill -CONT $pid"
done
! is_mounted || fail 'the mount of the stopped daemon is still there'
kill -CONT "$pid"
wait_for 20 not_running "$pid" || fail 'the daemon does not go on to its end'

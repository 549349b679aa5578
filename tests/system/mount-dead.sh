#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A dead mount that is not in use: commands say what to do, and `refrain umount`
# detaches it.
set -eu
name=mount-dead
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse
# shellcheck source=tests/system/mount-umount-lib.sh
. "${srcdir:-.}/tests/system/mount-umount-lib.sh"

in_background --no-hold
kill -9 "$pid"
wait_for 20 not_running "$pid" || fail 'kill -9 does not'
! "$refrain" status "$mnt" 2>"$work/err" || fail 'a dead mount has a status'
complains "$mnt" "refrain umount $mnt"
"$refrain" umount "$mnt" || fail 'cannot detach a dead mount'
! is_mounted || fail 'the dead mount is still there'
! "$refrain" umount "$mnt" 2>"$work/err" || fail 'unmounted what is none'
complains "$mnt" 'nothing is mounted'

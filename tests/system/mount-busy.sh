#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain umount` refuses a mount that is busy, and detaches it with --lazy.
# umount(8) and `refrain umount` end a mount that is not busy. Only the cache is
# left.
set -eu
name=mount-busy
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 flock
# shellcheck source=tests/system/mount-end-lib.sh
. "$(dirname "$0")/mount-end-lib.sh"

big=$(cd "$src" && find . -type f -size +300k -printf '%P\n' | sort | head -n 1)
begin
exec 3<"$mnt/$big"
ends 1 "^refrain: umount: '$mnt' is busy: .*--lazy" "$refrain" umount "$mnt"
has_status ready true || fail 'a refused umount harms'
ends 0 '' "$refrain" umount --lazy "$mnt"
[ -z "$(mounts_below "$work")" ] || fail 'still mounted after --lazy'
cmp - "$src/$big" <&3 || fail 'wrong bytes after --lazy'
daemon_gone && fail 'the daemon of an open file has gone'
exec 3<&-
ended_within 5
all_gone --lazy
begin
umount "$mnt"
ended_within 5
all_gone 'umount(8)'
begin
read_on --sums "$work/sums"
wait "$reading" || fail "an epoch: $(cat "$work/reader")"
stop_mount
all_gone 'refrain umount'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount that is in use stays, or is detached with --lazy. `refrain umount`
# names what uses it: an open file, a bind mount, or a copy in another mount
# namespace.
set -eu
name=mount-held
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse
# shellcheck source=tests/system/mount-umount-lib.sh
. "${srcdir:-.}/tests/system/mount-umount-lib.sh"

# A busy mount stays as it is, and can be detached.
in_background
exec 9<"$mnt/d0/e0/f00000"
! "$refrain" umount "$mnt" 2>"$work/err" || fail 'a busy mount was unmounted'
complains "$mnt" busy --lazy "(process $$)"
expect 'the mount that stayed' "$(status_field pid)" "$pid"
"$refrain" umount --lazy "$mnt" || fail 'cannot detach'
! is_mounted || fail 'the mount is still in sight'
exec 9<&-
wait_for 20 not_running "$pid" || fail 'the daemon outlives its last user'

[ "$(id -u)" -eq 0 ] || {
	note 'the rest needs root'
	exit 0
}

# A bind mount uses the mount, which is detached.
in_background
mkdir "$work/bound"
mount --bind "$mnt" "$work/bound"
! "$refrain" umount "$mnt" 2>"$work/err" || fail 'it ends nevertheless'
complains "process $pid" "also mounted at '$work/bound'"
umount "$work/bound"
wait_for 20 not_running "$pid" || fail 'the daemon outlives the bind'

# Another mount namespace has a copy of the mount.
in_background
mkfifo "$work/hold" "$work/held"
# shellcheck disable=SC2016 # for the inner shell
unshare -m --propagation private sh -c \
	'echo held >"$2"; read -r _ <"$1"' \
	sh "$work/hold" "$work/held" &
holder=$!
read -r _ <"$work/held"
! "$refrain" umount "$mnt" 2>"$work/err" || fail 'it ends nevertheless'
complains "process $pid" "mount namespace of " \
	"(process $holder) has it at '$mnt'"
echo end >"$work/hold"
wait "$holder" || fail 'the holder fails'
wait_for 20 not_running "$pid" || fail 'the daemon outlives the holder'

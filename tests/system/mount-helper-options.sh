#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Options of mount.refrain, as an fstab line has them: options of mount(8) are
# accepted, contexts are passed to the kernel, and a misspelt option is refused
# with a message that names the right one.
set -eu
name=mount-helper-options
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse
# shellcheck source=tests/system/mount-umount-lib.sh
. "${srcdir:-.}/tests/system/mount-umount-lib.sh"

ln -s "$refrain" "$work/mount.refrain"
for words in cahce=x:8M:cache tiemout=3:timeout sttaging=1G:staging; do
	got=0
	"$work/mount.refrain" "$src" "$mnt" -o "ro,${words%:*}" 2>"$work/err" ||
		got=$?
	expect "exit status of -o ${words%:*}" $got 2
	complains "unknown option '${words%:*}' (did you mean ${words##*:}?)"
done
"$work/mount.refrain" "$src" "$mnt" -n -o \
	"rw,noauto,_netdev,x-systemd.automount,cache=$cache:8M,limit=1M" ||
	fail 'the helper cannot mount'
expect 'the name of its process' \
	"$(cat "/proc/$(status_field pid)/comm")" refrain
sums_right "$src.sums" "$mnt"
"$refrain" umount "$mnt" || fail 'cannot unmount'

# A kernel without SELinux refuses the option, which shows that the kernel gets
# it.
context=system_u:object_r:tmp_t:s0:c1,c2
got=0
"$work/mount.refrain" "$src" "$mnt" -o "cache=$cache:8M,context=\"$context\"" \
	2>"$work/err" || got=$?
if [ -e /sys/fs/selinux/enforce ]; then
	expect 'the status of a mount with a context' $got 0
	grep " $mnt " /proc/self/mountinfo | grep -qF "context=" ||
		fail 'no context of the mount'
	"$refrain" umount "$mnt" || fail 'cannot unmount'
else
	expect 'the status of a mount with a context' $got 1
	complains 'contexts need root and a kernel with SELinux'
fi

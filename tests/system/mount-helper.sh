#!/bin/sh
# SPDX-License-Identifier: MIT
#
# mount(8) mounts with mount.refrain and the options of an fstab line; an
# unknown option is refused.
set -eu
name=mount-helper
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 flock unshare
# shellcheck source=tests/system/mount-end-lib.sh
. "$(dirname "$0")/mount-end-lib.sh"

cache=$work/cache.10
ln -s "$refrain" "$work/mount.refrain"
"$work/mount.refrain" "$src" "$mnt" -s \
	-o "rw,cache=$cache:200M,limit=1M,noauto,x-systemd.automount,what=ever"
sums_right "$src.sums" "$mnt"
umount "$mnt"
wait_for 10 flock -n "$cache/refrain-lock" true ||
	fail 'the daemon does not end'
all_gone 'mount.refrain'
ends 2 "^refrain: mount: unknown option 'what=ever'" \
	"$work/mount.refrain" "$src" "$mnt" -o "cache=$cache:1M,what=ever"

# Only in this namespace is mount.refrain at the place where mount(8) looks for
# helpers.
cat >"$work/helper.sh" <<'END'
set -e
mount -t tmpfs none "$1/over"
mkdir "$1/over/up" "$1/over/work"
mount -t overlay overlay \
	-o "lowerdir=/sbin,upperdir=$1/over/up,workdir=$1/over/work" /sbin ||
	exit 77
ln -s "$2" /sbin/mount.refrain
mount -t refrain "$1/src" "$1/mnt" -o "cache=$1/cache.11:200M,allow_other"
(cd "$1/mnt" && sha256sum --quiet --strict -c "$1/src.sums")
grep " $1/mnt ro,nosuid,nodev.* - fuse.refrain $1/src " /proc/self/mountinfo
umount "$1/mnt"
END
mkdir "$work/over"
got=0
unshare -m --propagation private sh "$work/helper.sh" "$work" "$refrain" \
	>"$work/out" 2>&1 || got=$?
if [ $got -eq 77 ]; then
	note "mount -t refrain not tried: $(tail -n 1 "$work/out")"
else
	[ $got -eq 0 ] || fail "mount -t refrain: $(cat "$work/out")"
	cache=$work/cache.11
	wait_for 10 flock -n "$cache/refrain-lock" true ||
		fail 'it does not end'
	all_gone 'mount -t refrain'
fi

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The `limits` of the status and the log, for tiers: a tier in memory that does
# not fit into a memory control group, one that was deleted, and one whose new
# size is less than its content; and the name of a tier that failed.
set -u
name=limits
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

cache=$work/cache
shm=$short/tier
group=

limit_says() {
	"$refrain" status "$mnt" | grep -q -e "$1"
}

must_say() {
	wait_for 20 limit_says "$1" || {
		"$refrain" status "$mnt"
		fail "status does not say: $1"
	}
}

must_not_say() {
	! limit_says "$1" || fail "status says: $1"
}

must_log() {
	wait_for 20 grep -q -e "$1" "$daemon_err" || fail "not logged: $1"
}

# tier_errors DIR: print the number of errors of that tier.
tier_errors() {
	"$refrain" status "$mnt" --json | python3 -c '
import json, sys
for tier in json.load(sys.stdin)["tiers"]:
    if tier["dir"] == sys.argv[1]:
        print(tier["tier_errors"])' "$1"
}

i=0
while [ $i -lt 20 ]; do
	head -c 20000 /dev/urandom >"$src/f$i"
	i=$((i + 1))
done

# -- A tier that is given less than it holds ----------------------------------

start_mount "$src" "$mnt" --cache "$cache:1M"
cat "$mnt"/* >/dev/null || fail 'cannot read'
must_not_say 'nothing is added'
stop_mount
start_mount "$src" "$mnt" --cache "$cache:100K"
must_say "cache '$cache' has a size of 100.0 KiB but holds 400.0 KiB"
must_log "refrain: warning: cache '$cache' has a size of 100.0 KiB"
stop_mount

# -- A tier whose directory has gone ------------------------------------------

start_mount "$src" "$mnt" --cache "$cache:1M" --cache "$work/second:1M"
scan_through
mv "$cache" "$work/moved"
must_say "cache directory '$cache' was deleted or moved: unmount, and mount"
mv "$work/moved" "$cache"
must_not_say 'was deleted or moved'
rm -rf "$cache"
must_say "cache directory '$cache' was deleted or moved: unmount, and mount"
head -c 20000 /dev/urandom >"$src/new"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
cmp "$src/new" "$mnt/new" || fail 'wrong bytes'
must_log "error: cache directory '$cache' was deleted; unmount, and mount again"
[ "$(tier_errors "$cache")" -ge 1 ] || fail 'its errors are not counted'
expect 'errors of the other tier' "$(tier_errors "$work/second")" 0
stop_mount
start_mount "$src" "$mnt" --cache "$cache:1M" --cache "$work/second:1M"
must_not_say 'was deleted or moved'
stop_mount

# -- The screen ---------------------------------------------------------------

start_mount "$src" "$mnt" --cache "$cache:1M"
cat "$mnt"/* >/dev/null
cat "$mnt"/* >/dev/null
must_say "data      since the mount: "
must_say "reads     21 reached refrain; the cache had "
must_say "reads that the kernel answered from its page cache do not"
stop_mount

# -- A tmpfs that takes a huge page for each entry ----------------------------

mkdir "$work/huge"
if mount -t tmpfs -o size=64m,huge=always none "$work/huge" 2>/dev/null; then
	start_mount "$src" "$mnt" --cache "$work/huge/cache:32M"
	must_log "'$work/huge/cache' is on a tmpfs with huge=always, where an"
	cat "$mnt"/* >/dev/null || fail 'cannot read'
	must_say 'an entry takes at least .*; remount the tmpfs with'
	stop_mount
	umount "$work/huge"
else
	note 'no tmpfs with huge pages'
fi

# -- A memory control group that is smaller than a tier in memory --------------

end_group() {
	[ -z "$group" ] || rmdir "$group" 2>/dev/null || :
}

make_group() {
	v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ {
			print $2
			exit
		}' /proc/mounts)
	v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	if [ -n "$v1" ]; then
		group=$v1/refrain-limits-$$
		mkdir "$group" 2>/dev/null || return 1
		echo $((300 << 20)) >"$group/memory.limit_in_bytes"
	elif [ -n "$v2" ]; then
		group=$v2/refrain-limits-$$
		mkdir "$group" 2>/dev/null || return 1
		echo $((300 << 20)) 2>/dev/null >"$group/memory.max"
	else
		return 1
	fi
}

if ! df --output=fstype "$short" | grep -q tmpfs || ! make_group; then
	end_group
	note 'no tmpfs, or no memory control group of our own'
	exit 0
fi
start_mount "$src" "$mnt" --cache "$shm:100M"
must_not_say 'memory control group'
stop_mount
mount_in_group() {
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group" \
		"$refrain" mount "$src" "$mnt" --cache "$shm:100M" \
		--staging 256M 2>"$work/said" ||
		fail 'no mount in a control group'
	daemon=$(status_field pid)
}
warned() {
	grep -q 'refrain: warning: the memory control group allows 300.0 MiB' \
		"$work/said"
}
mount_in_group
must_say 'the memory control group allows 300.0 MiB, but the mount'
# A mount waits for its log for a second, which may be too short on a busy
# machine.
tries=5
until warned; do
	tries=$((tries - 1))
	[ $tries -gt 0 ] || fail 'mount does not warn'
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	wait_for 20 daemon_gone || fail 'the daemon does not end'
	mount_in_group
done
"$refrain" umount "$mnt" || fail 'cannot unmount'
wait_for 20 daemon_gone || fail 'the daemon does not end'
daemon=
wait_for 20 rmdir "$group" || fail 'the control group stays'

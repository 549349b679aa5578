#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An origin on which every open and read takes a while: readers of many files
# wait for all of them at the same time, and each file takes one open, one read,
# and one check of its version. This holds for a file system that is the source
# itself, and for one that is mounted below it. The names are in the kernel's
# cache, so an open needs no look-up.
set -eu
name='far-origin'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse fusermount3
[ -x bench/slow-fs ] || skip 'needs bench/slow-fs'

files=32
far=$work/far
far_pid=
mkdir "$work/data" "$far" "$src/far"
for i in $(seq $files); do
	head -c 100000 /dev/urandom >"$work/data/f$i"
done
"$reader" "$work/data" --make-sums "$work/sums" >/dev/null

# begin_far DIR: mount the slow file system at DIR.
begin_far() {
	bench/slow-fs "$work/data" "$1" 50 &
	far_pid=$!
	wait_for 10 mountpoint -q "$1" || fail 'the slow file system'
}

end_far() {
	umount -l "$1" 2>/dev/null || fusermount3 -uz "$1"
	kill $far_pid 2>/dev/null || :
	wait $far_pid || :
}

# asked WHAT: print the number of these requests to the slow file system since
# the counts were taken.
asked() {
	sed 's/, /\n/g' "$work/counts" | sed -n "s/^\"$1\": //p"
}

# read_all FAR DIR: read a cold epoch of DIR, below which FAR is mounted.
read_all() {
	wait_for 10 has_status scan complete || fail 'no scan'
	find "$1" -exec stat {} + >/dev/null
	cat "$1/.requests" >/dev/null
	"$reader" "$2" --threads $files --sums "$work/sums" >"$work/out" 2>&1 ||
		fail "reading: $(cat "$work/out")"
	cat "$1/.requests" >"$work/counts"
	note "$(cat "$work/counts")"
	[ "$(asked opens)" -eq $files ] || fail 'not one open a file'
	[ "$(asked reads)" -eq $files ] || fail 'not one read a file'
	[ "$(asked opens_at_once)" -ge 8 ] || fail 'opens wait for each other'
	[ "$(asked reads_at_once)" -ge 8 ] || fail 'reads wait for each other'
}

begin_far "$far"
start_mount "$far" "$mnt" --cache "$work/cache.1:100M"
read_all "$far" "$mnt"
stop_mount
end_far "$far"

begin_far "$src/far"
start_mount "$src" "$mnt" --cache "$work/cache.2:100M"
read_all "$src/far" "$mnt/far"
stop_mount
end_far "$src/far"

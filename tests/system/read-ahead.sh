#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The kernel's read-ahead of the mount is raised from the first file on, even if
# nobody has asked for a status. Random reads of ranges from a large file read
# only these ranges from the origin.
set -eu
name=read-ahead
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse root mountpoint

ranges=$PWD/bench/range-reader
count=64 length=131072

# random ALIGN: print the origin bytes of random reads through a new mount. The
# daemon is in the background, and gets no request before the first read.
random() {
	"$refrain" mount "$src" "$mnt" --cache "$work/cache.$1:200M" ||
		fail 'cannot mount'
	kib=$(cat "/sys/class/bdi/$(mountpoint -d "$mnt")/read_ahead_kb")
	"$ranges" "$mnt/shard" $count $length "$1" >"$work/ranges" ||
		fail 'reading ranges failed'
	got=$(status_field origin_bytes)
	ahead=$(status_field prefetch_issued)
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	note "offsets of $1: $got bytes for $((count * length)), $kib KiB"
	expect 'read-ahead of the mount' "$kib" 1024
	expect 'items fetched ahead' "$ahead" 0
	[ "$got" -ge $((count * length)) ] ||
		fail "$got bytes from the origin are too few"
	[ $((got * 10)) -le $((count * length * 11)) ] ||
		fail "$got bytes from the origin are too many"
}

truncate -s 128M "$src/shard"
random 4096
random 1

# A file that is read in order is fetched ahead of its reader.
start_mount "$src" "$mnt" --cache "$work/cache.order:200M"
dd if="$mnt/shard" of=/dev/null bs=128K count=64 2>/dev/null
[ "$(status_field prefetch_issued)" -gt 0 ] ||
	fail 'nothing is fetched ahead of a sequential reader'
stop_mount

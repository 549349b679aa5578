#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The first lines of the status: the share of the dataset that the source had to
# deliver, in a first epoch, with a cache for half of it, with a plan, and if
# nothing is read from the source. A misleading share of 0 % is never shown.
set -u
name='status-data'
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires root fuse

files=40
screen=$work/screen

i=10
while [ $i -lt $((files + 10)) ]; do
	head -c 20000 /dev/urandom >"$src/f$i"
	i=$((i + 1))
done

look() {
	"$refrain" status "$mnt" >"$screen" || fail 'no status'
	! grep -v -e '\[' -e '^  epoch ' "$screen" | grep -qw '0 %' ||
		fail "a 0 % that misleads: $(cat "$screen")"
}

# shows LINE: check that the status has a line that matches the regular
# expression.
shows() {
	grep -q -e "^  $1\$" "$screen" ||
		fail "status does not say '$1': $(cat "$screen")"
}

says() {
	look
	shows "$1"
}

# since_mount SHARE: check the share of the dataset, and the bytes, since the
# mount.
since_mount() {
	says "data      since the mount: $1"
}

# in_epoch SHARE BYTES: check the same for this epoch. On a busy machine the
# last miss may be a second ago, and then no epoch is known.
in_epoch() {
	look
	! grep -q '^  data      since the mount' "$screen" || return 1
	shows "data      this epoch: $1 read from the source so far, $2"
}

nobody_reads() {
	! "$refrain" status "$mnt" | grep -q 'this epoch'
}

all='of the dataset'
kernel='reads that the kernel answered from its page cache do not'
kernel="          $kernel reach refrain"

note 'nobody reads'
start_mount "$src" "$mnt" --cache "$work/whole:10M"
scan_through
since_mount 'nothing read from the source'
says 'reads     none reached refrain'
shows "$kernel"
stop_mount

# half_cached: read two epochs of a new mount with room for half. Returns false
# if the machine was slow.
half_cached() {
	rm -rf "$work/half"
	start_mount "$src" "$mnt" --cache "$work/half:400K"
	scan_through
	cat "$mnt"/f1* >/dev/null
	in_epoch "25 % $all" '195.3 KiB' || return
	cat "$mnt"/f[2-4]* >/dev/null
	in_epoch "100 % $all" '781.2 KiB' || return
	shows 'reads     40 reached refrain; the cache had none of them'
	! grep -q 'were expected' "$screen" ||
		fail 'hits where none were expected'
	# Items stay in memory for a moment.
	wait_for 20 has_status staging_bytes 0 || fail 'staging is not empty'
	drop_caches
	cat "$mnt"/* >/dev/null
	in_epoch "50 % $all" '390.6 KiB'
}

note 'half a cache'
tries=20
until half_cached; do
	tries=$((tries - 1))
	[ $tries -gt 0 ] || fail "the machine is too busy: $(cat "$screen")"
	stop_mount
done
shows 'reads     80 reached refrain; the cache had 20 of them, 390.6 KiB'
wait_for 20 nobody_reads || fail 'the epoch does not end'
since_mount '1.50 times the dataset read from the source, 1.1 MiB'
expect 'the gauge while nobody reads' "$(status_field epoch_origin_bytes)" ''
stop_mount

note 'all of it is cached, and then in the kernel'
start_mount "$src" "$mnt" --cache "$work/whole:10M"
"$refrain" warm "$mnt" >/dev/null || fail 'cannot warm'
since_mount "100 % $all read from the source, 781.2 KiB"
stop_mount
start_mount "$src" "$mnt" --cache "$work/whole:10M"
scan_through
for _ in 1 2; do
	cat "$mnt"/* >/dev/null
	since_mount 'nothing read from the source'
done
read=$(status_field hits)
[ "$read" -ge $files ] || fail "$read hits"
says "reads     $read reached refrain; the cache had $read of them, .*"
shows "$kernel"
stop_mount

note 'a plan fetches all before the first read'
start_mount "$src" "$mnt" --cache "$work/planned:100K"
scan_through
ls "$src" >"$work/names"
for _ in 1 2; do
	drop_caches
	"$refrain" plan "$mnt" --batch 8 <"$work/names" >"$work/said" 2>&1 &
	planning=$!
	wait_for 20 has_status planned_bytes 700000 ||
		fail "the plan: $(cat "$work/said")"
	wait_for 20 has_status inflight 0 || fail 'it goes on fetching'
	cat "$mnt"/f1* >/dev/null
	# In the second epoch, the mount may still have some items of the first
	# one.
	since_mount "[0-9.]* [%a-z ]* the dataset read from the source, .*"
	cat "$mnt"/f[2-4]* >/dev/null
	wait $planning || fail "the plan failed: $(cat "$work/said")"
done
stop_mount
echo PASS

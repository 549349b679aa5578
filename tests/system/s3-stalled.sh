#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A store that accepts requests and answers none, with 64 reads that wait for
# it: cached files are served as fast as without these reads (M26), names are
# shown, and later all reads are right. Then epochs with a cache for a part of
# the files: exactly the missing bytes are fetched (M3). STALLED_S is the
# minimum time for which the reads hang. A p99 of hits up to STALLED_FLOOR_US
# passes; with 0 only the factor of 2 counts.
set -u
name=s3-stalled
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires root fuse curl mount
[ -x tests/system/far ] || skip 'built without http and s3'

held=64
rounds=3
floor_us=${STALLED_FLOOR_US:-$((250000 * patience))}
bytes=110000

# p99: print the p99 of hits in microseconds. The kernel has none of their
# pages.
p99() {
	"$helpers/hit_times" "$mnt" 1000 <"$work/hits" >"$work/times" ||
		fail 'hits fail'
	cut -d ' ' -f 2 "$work/times"
}

best() {
	sort -n "$1" | head -n 1
}

inflight_at_least() {
	n=$(status_field inflight)
	[ "${n:-0}" -ge "$1" ]
}

far_start files=400 size=$bytes dirs=2
start_mount s3://many "$work/mnt" --cache "$work/tier:100M" \
	--endpoint-url "$far"
scan_through
"$refrain" warm "$mnt" d0000000 >/dev/null || fail 'cannot warm'
(cd "$mnt" && find d0000000 -type f) >"$work/hits"
(cd "$mnt" && find d0000001 -type f) | head -n $held >"$work/misses"
for r in $(seq $rounds); do
	p99 >>"$work/free"
done
far_set never=1
# A read may fail before the store is back. Then it is repeated.
until "$reader" "$mnt" --threads $held --files-from "$work/misses" \
	>"$work/readers" 2>&1; do
	[ ! -e "$work/enough" ] || exit 1
done &
readers=$!
wait_for 20 inflight_at_least $held || fail "not $held reads hang"
begin_s=$(date +%s)
r=0
while [ $r -lt $rounds ] ||
	[ $(($(date +%s) - begin_s)) -lt "${STALLED_S:-0}" ]; do
	p99 >>"$work/beside"
	r=$((r + 1))
done
drop_caches
expect 'names meanwhile' "$(find "$mnt" -type f | wc -l)" 400
wait_for 20 inflight_at_least $held || fail 'the reads did not hang'
far_set never=0
wait_for 60 has_ended $readers || fail 'the reads do not end'
: >"$work/enough"
wait $readers || fail "after the stall: $(cat "$work/readers")"
free_us=$(best "$work/free")
beside_us=$(best "$work/beside")
note "p99 of hits beside $held reads that hang: $beside_us us, without:" \
	"$free_us us; all: $(tr '\n' ' ' <"$work/beside")and $(tr '\n' ' ' \
		<"$work/free")"
[ "$beside_us" -le $((2 * free_us)) ] || [ "$beside_us" -le "$floor_us" ] ||
	fail "hits wait for the store: $beside_us us, not $free_us us"
expect 'files in the tier' "$(status_field entries)" $((200 + held))
stop_mount
rm -rf "$work/tier"

# -- Epochs of a cache that holds a part, and a remount in between
far_zero
start_mount s3://many "$work/mnt" --cache "$work/tier:10M" \
	--endpoint-url "$far"
scan_through
# epoch: read an epoch. Items of the last one are in the tier, or dropped, when
# the next one begins.
epoch() {
	wait_for 20 has_status inflight 0 || fail 'the epoch does not end'
	wait_for 20 has_status staging_bytes 0 || fail 'staging keeps items'
	drop_caches
	resident=$(status_field resident_bytes)
	before=$(status_field origin_bytes)
	gets=$(far_count gets)
	"$reader" "$mnt" --threads 16 --first-epoch "$1" >"$work/read" 2>&1 ||
		fail "epoch $1: $(cat "$work/read")"
	missed=$((400 * bytes - resident))
	expect "bytes of epoch $1" \
		"$(($(status_field origin_bytes) - before))" $missed
	expect "GETs of epoch $1" "$(($(far_count gets) - gets))" \
		$((missed / bytes))
}
for n in 1 2 3; do
	epoch $n
done
[ "$resident" -ge 8000000 ] || fail "only $resident bytes are resident"
lists=$(far_count lists)
stop_mount
start_mount s3://many "$work/mnt" --cache "$work/tier:10M" \
	--endpoint-url "$far"
scan_through
expect 'requests of a remount' "$(status_field origin_requests)" 0
epoch 4
expect 'lists of a remount' "$(far_count lists)" "$lists"
expect HEADs "$(far_count heads)" 0
stop_mount

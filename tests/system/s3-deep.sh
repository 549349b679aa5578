#!/bin/sh
# SPDX-License-Identifier: MIT
# A mount of s3:// serves while a long listing is in progress. It has up to 256
# requests in flight if there are as many readers, and limits the requested
# bytes.
set -u
name=s3-deep
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'

s3_mount() {
	start_mount s3://many "$work/mnt" --cache "$work/tier:200M" \
		--endpoint-url "$far"
}

# -- Half a million keys, a second for each page
far_start files=500000 size=100000 dirs=500 list_ms=1000
s3_mount
file=d0000321/f0321123.bin
far_set verify=0
curl -sf "$far/many/$file" -o "$work/want" || fail "the store lacks $file"
far_set verify=1
cmp "$work/want" "$mnt/$file" || fail 'wrong bytes while the listing goes on'
[ ! -e "$mnt/d0000321/none" ] || fail 'a file that the store lacks'
! has_status scan complete || fail 'the listing was not long enough'
expect GETs "$(far_count gets)" 2
stop_mount
rm -rf "$work/tier"

# -- As many readers as requests may be in flight, and more
far_set files=300 dirs=0 list_ms=0 size=10000
s3_mount
scan_through
far_zero
far_set never=1
"$reader" "$mnt" --threads 300 >"$work/out" 2>&1 &
readers=$!
out_at_once() {
	[ "$(far_count most)" -ge 256 ]
}
wait_for 20 out_at_once ||
	fail "only $(far_count most) requests are out at a time"
expect 'most requests at a time' "$(far_count most)" 256
kill $readers
far_set never=0
stop_mount
rm -rf "$work/tier"

# -- Requests in flight cover at most a quarter of staging, and more than one
# item
far_set files=64 size=1000000 delay_ms=100
start_mount s3://many "$work/mnt" --cache "$work/tier:200M" \
	--endpoint-url "$far" --limit 1M --chunk 1M --staging 16M
scan_through
far_zero
"$reader" "$mnt" --threads 64 >"$work/out" || fail 'cannot read'
most=$(far_count most_bytes)
[ "$most" -le $((4 << 20)) ] || fail "$most bytes are in flight"
[ "$most" -ge 2000000 ] || fail "never more than $most bytes in flight"
stop_mount
rm -rf "$work/tier"

# -- The same on a link so slow that each request takes seconds
far_set files=16 delay_ms=0 rate=2000000
start_mount s3://many "$work/mnt" --cache "$work/tier:200M" \
	--endpoint-url "$far" --limit 1M --chunk 1M --staging 16M
scan_through
far_zero
"$reader" "$mnt" --threads 16 >"$work/out" || fail 'cannot read'
most=$(far_count most_bytes)
[ "$most" -le $((4 << 20)) ] || fail "$most bytes are in flight"
stop_mount
rm -rf "$work/tier"

# -- A large file: each byte comes once
far_set files=1 size=67108864 delay_ms=20 rate=0
start_mount s3://many "$work/mnt" --cache "$work/tier:200M" \
	--endpoint-url "$far"
scan_through
far_zero
cat "$mnt/f0000000.bin" >"$work/got" || fail 'cannot read'
expect 'bytes from the store' "$(status_field origin_bytes)" 67108864
[ "$(far_count gets)" -le 160 ] || fail "$(far_count gets) GETs for 64 MiB"
far_set verify=0
curl -sf "$far/many/f0000000.bin" | cmp - "$work/got" || fail 'wrong bytes'
stop_mount

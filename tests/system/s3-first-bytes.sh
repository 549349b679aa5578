#!/bin/sh
# SPDX-License-Identifier: MIT
#
# First bytes come early: a server that waits for the acknowledgement of its
# headers gets it at once, and a read does not wait for the last byte of its
# item.
set -u
name=s3-first-bytes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-answers-lib.sh
. "$(dirname "$0")/s3-answers-lib.sh"

# -- A server that waits for the acknowledgement of its headers gets it at once.
# curl's comes after 40 ms
far_set nagle=1 files=64 size=20000
s3_mount many --cache "$work/tier:20M"
scan_through
begin=$(date +%s%3N)
cat "$mnt"/*.bin >"$work/got" || fail EIO
took=$(($(date +%s%3N) - begin))
far_set verify=0
begin=$(date +%s%3N)
curl -sf "$far/many/f00000[00-63].bin" >"$work/all64" || fail 'curl fails'
curl_took=$(($(date +%s%3N) - begin))
cmp "$work/got" "$work/all64" || fail 'other bytes'
[ $((2 * took)) -lt $curl_took ] ||
	fail "64 files take $took ms, curl $curl_took ms"
far_set nagle=0 files=40 size=100000 verify=1
end_mount

# -- The first bytes, long before the last
far_set files=1 size=7000000 rate=100000
s3_mount many --cache "$work/tier:64M" --limit 8M
scan_through
far_zero
dd if="$mnt/f0000000.bin" of="$work/got" bs=4096 count=1 iflag=direct \
	2>/dev/null || fail 'cannot read'
expect 'bytes that were read' "$(wc -c <"$work/got")" 4096
expect GETs "$(far_count gets)" 1
[ "$(far_count bytes)" -lt 3500000 ] || fail 'the read waited for the item'
expect entries "$(status_field entries)" 0
far_set rate=0
end_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount of s3://: names, bytes, and the requests that they cost; a remount
# asks nothing, and another store does not get the cache.
set -u
name=s3-reads
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires root fuse curl mount
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-reads-lib.sh
. "$(dirname "$0")/s3-reads-lib.sh"

# same KEY: check that the mount has the bytes of the store.
same() {
	curl -sf "$far/many/$1" -o "$work/want" || fail "no object: $1"
	cmp "$work/want" "$mnt/$1" || fail "wrong bytes: $1"
}

# -- Names and bytes, and their requests
s3_mount many
scan_through
expect files "$(find "$mnt" -type f | wc -l)" 300
expect size "$(stat -c %s "$mnt/d0000001/f0000123.bin")" 110000
expect 'list requests' "$(far_count lists)" 2
far_zero
cat "$mnt"/*/* >"$work/all" || fail 'cannot read'
expect bytes "$(wc -c <"$work/all")" 33000000
expect 'GETs for 300 files' "$(far_count gets)" 300
expect HEADs "$(far_count heads)" 0
expect requests "$(status_field origin_requests)" 302
expect 'bytes sent' "$(status_field origin_bytes)" 33000000
far_set verify=0
same d0000000/f0000000.bin
same d0000002/f0000299.bin
far_set verify=1
drop_caches
far_zero
cat "$mnt"/*/* | cmp - "$work/all" || fail 'other bytes the second time'
expect 'requests of a warm epoch' "$(far_count gets)" 0
stop_mount

# -- A remount sends no request
far_zero
s3_mount many
scan_through
cat "$mnt"/*/* | cmp - "$work/all" || fail 'other bytes after a remount'
expect 'requests of a remount' "$(status_field origin_requests)" 0
stop_mount

# -- Another store with a bucket of that name does not get this cache
"$refrain" mount s3://many "$work/mnt" --cache "$work/tier:200M" \
	--endpoint-url "$far/other" >"$work/said" 2>&1 &&
	fail "another store's cache is used"
expect 'lines about another store' "$(wc -l <"$work/said")" 1
grep -q "belongs to dataset 's3=$far/many'; use another" "$work/said" ||
	fail "says: $(cat "$work/said")"
rm -rf "$work/tier"
! grep -rq 'Secret/' "$work"/daemon.*.err || fail 'a secret is in the log'

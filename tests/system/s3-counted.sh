#!/bin/sh
# SPDX-License-Identifier: MIT
#
# All requests to a store are counted, even those that are refused or cut; with
# empty caches, each byte is fetched once.
set -u
name=s3-counted
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-answers-lib.sh
. "$(dirname "$0")/s3-answers-lib.sh"

s3_mount many --cache "$work/tier:20M"
scan_through
far_set busy=0.2 cut=0.2
cat "$mnt"/*.bin >"$work/all" || fail 'EIO'
far_set busy=0 cut=0
end_mount
far_zero
far_set busy=0.3
s3_mount many --cache "$work/tier:20M" --revalidate 1
scan_through
cat "$mnt"/*.bin | cmp - "$work/all" || fail 'other bytes'
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
far_set busy=0
ls "$mnt/none" 2>/dev/null && fail 'a name from nowhere'
expect 'requests that were counted' "$(status_field origin_requests)" \
	"$(far_count requests)"
end_mount

# -- Caches of nothing: all passes through, and each byte is fetched once
far_zero
s3_mount many --cache "$work/tier:64K" --limit 64K --chunk 64K --staging 256K
scan_through
cat "$mnt"/*.bin | cmp - "$work/all" || fail 'other bytes without a cache'
expect 'bytes from the store' "$(status_field origin_bytes)" 4000000
end_mount

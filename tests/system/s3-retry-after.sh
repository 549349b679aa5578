#!/bin/sh
# SPDX-License-Identifier: MIT
#
# If a store says when to retry, the request is not repeated earlier.
set -u
name=s3-retry-after
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
far_zero
far_set busy=1 retry_after=3
begin=$(date +%s%3N)
cat "$mnt/f0000000.bin" >"$work/got" &
reading=$!
refused() {
	[ "$(far_count busy)" -gt 0 ]
}
wait_for 10 refused || fail 'nothing is asked'
far_set busy=0 retry_after=0
wait $reading || fail 'EIO although the store came back'
took=$(($(date +%s%3N) - begin))
expect 'GETs of one that was refused' "$(far_count gets)" \
	$(($(far_count busy) + 1))
[ $took -ge 3000 ] || fail "asked again after $took ms, not 3 s"
end_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount that starts while the store is busy says so. If the store fails only
# for a moment, the start continues.
set -u
name=s3-start-busy
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-answers-lib.sh
. "$(dirname "$0")/s3-answers-lib.sh"

# -- A mount that starts while the store is busy says so
far_set busy=1
"$refrain" mount s3://many "$work/mnt" --endpoint-url "$far" --cache \
	"$work/tier:1M" >"$work/said" 2>&1 && fail 'mounted'
grep -q 'the server is busy' "$work/said" || fail "says: $(cat "$work/said")"
far_set busy=0

# -- A start continues if the store fails only for a moment
asked() {
	[ "$(far_count requests)" -gt 0 ]
}
far_zero
far_set flood=502
"$refrain" mount s3://many "$work/mnt" --endpoint-url "$far" --cache \
	"$work/tier:1M" >"$work/said" 2>&1 &
starting=$!
wait_for 10 asked || fail 'nothing is asked'
far_set flood=0
wait $starting || fail "one 502 ends a start: $(cat "$work/said")"
"$refrain" umount "$work/mnt" || fail 'cannot unmount'
rm -rf "$work/tier"

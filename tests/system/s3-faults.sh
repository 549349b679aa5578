#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A store that is busy, cuts bodies, or never answers some requests: readers get
# the right bytes, and the log says why reads took longer.
set -u
name=s3-faults
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-reads-lib.sh
. "$(dirname "$0")/s3-reads-lib.sh"

read_once
s3_mount many --log-level info
scan_through
far_set busy=0.1
far_zero
cat "$mnt"/*/* | cmp - "$work/all" || fail 'EIO while the store is busy'
far_set busy=0
busy=$(far_count busy)
expect throttled "$(status_field origin_throttled)" "$busy"
wait_for 10 grep -q 'the source is busy' "$daemon_err" ||
	fail 'the log has no throttling'
[ "$busy" -gt 5 ] || fail 'nothing was refused'
stop_mount
rm -rf "$work/tier"
s3_mount many
scan_through
far_set cut=0.1
cat "$mnt"/*/* | cmp - "$work/all" || fail 'wrong bytes of cut bodies'
[ "$(far_count cut)" -gt 5 ] || fail 'nothing was cut'
far_set cut=0
stop_mount
rm -rf "$work/tier"
s3_mount many --log-level info
scan_through
far_set never=0.03
find "$mnt" -type f | sort | xargs -P 8 -n 10 cat >/dev/null ||
	fail 'EIO while some requests are never answered'
far_set never=0
[ "$(status_field origin_hedged)" -gt 0 ] || fail 'no late read was hedged'
wait_for 10 grep -q 'asking a second time' "$daemon_err" ||
	fail 'the log has no hedge'
stop_mount
! grep -rq 'Secret/' "$work"/daemon.*.err || fail 'a secret is in the log'

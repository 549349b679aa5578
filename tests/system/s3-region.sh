#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The region of a bucket is found, and a wrong clock is corrected.
set -u
name=s3-region
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-reads-lib.sh
. "$(dirname "$0")/s3-reads-lib.sh"

read_once
far_set move=1 skew_s=5000
s3_mount many
scan_through
expect 'first bytes' "$(head -c 1000 "$mnt/d0000000/f0000000.bin" | cksum)" \
	"$(head -c 1000 "$work/all" | cksum)"
far_set move=0 skew_s=0
stop_mount
! grep -rq 'Secret/' "$work"/daemon.*.err || fail 'a secret is in the log'

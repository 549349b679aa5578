#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Buckets for which the requester pays, and a profile that changes while it is
# in use.
set -u
name=s3-profile-changes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-safety-lib.sh
. "$(dirname "$0")/s3-safety-lib.sh"

far_set payer=1
s3_mount many --requester-pays
scan_through
expect 'requester pays' "$(head -c 9 "$mnt/f0000000.bin" | wc -c)" 9
end_mount
far_set payer=0
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
mkdir -p "$work/.aws"
profile() {
	printf '[default]\naws_access_key_id = AK%s\n' "$1" >"$work/.aws/new"
	printf 'aws_secret_access_key = Secret/AK%s+key\n' "$1" \
		>>"$work/.aws/new"
	mv "$work/.aws/new" "$work/.aws/credentials"
}
profile 1
s3_mount many
scan_through
far_set only=2
profile 2
expect 'with a profile that changed' \
	"$(head -c 100000 "$mnt/f0000007.bin" | wc -c)" 100000
end_mount
far_set only=0
rm -r "$work/.aws"
! grep -rqaE 'Secret/|token/of' "$work"/daemon.*.err ||
	fail 'a secret is in the log'

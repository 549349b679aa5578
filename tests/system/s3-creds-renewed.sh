#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Credentials that live two seconds, under load: they are renewed in time, and
# no read fails. EXPIRE_S is their lifetime.
set -u
name=s3-creds-renewed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-creds-lib.sh
. "$(dirname "$0")/s3-creds-lib.sh"

printf 'container-token\n' >"$work/container.token"
lives_s=${EXPIRE_S:-2}
far_set "expire_s=$lives_s" delay_ms=100 "files=$((lives_s * 20))"
AWS_CONTAINER_CREDENTIALS_FULL_URI=$far/container
AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$work/container.token
export AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
start_mount s3://many "$work/mnt" --cache "$work/tier:20M" \
	--endpoint-url "$far" --log-level info
scan_through
for f in "$mnt"/*.bin; do
	cat "$f" >/dev/null || fail "EIO while credentials expire: $f"
done
renewed() {
	[ "$(status_field origin_renewed)" -ge 2 ]
}
wait_for $((18 + lives_s)) renewed || fail 'credentials are not renewed'
wait_for 10 grep -q 'credentials for the source were renewed' \
	"$daemon_err" ||
	fail 'the log has no renewal'
expect failures "$(status_field origin_failures)" 0
quiet 'renewed credentials'
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The message of a mount of s3:// that cannot start: one line with the bucket,
# the key or the credentials, and without a secret.
set -u
name=s3-start-said
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-reads-lib.sh
. "$(dirname "$0")/s3-reads-lib.sh"

refused() {
	want=$1
	shift
	"$refrain" mount --foreground "$@" "$work/mnt" --cache \
		"$work/tier:10M" --endpoint-url "$far" >"$work/said" 2>&1 &&
		fail "mounted: $*"
	grep -q "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
	expect lines "$(wc -l <"$work/said")" 1
}
refused 'no such bucket' s3://nothing
refused 'no keys' s3://many/prefix
refused 'not contain a user name' s3://user:geheim@many
refused 'not contain a query string' 'https://host/x?token=geheim'
! grep -q geheim "$work/said" || fail 'a secret is repeated'
AWS_SECRET_ACCESS_KEY=wrong refused 'secret key does not match' s3://many
AWS_ACCESS_KEY_ID=wrong refused 'does not know the access key' s3://many
far_set no_list=1
refused 'do not permit this' s3://many
! grep -rq 'Secret/' "$work"/daemon.*.err || fail 'a secret is in the log'

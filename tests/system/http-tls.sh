#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount of https:// on nginx: a certificate that is not valid is refused in a
# line that says why, --insecure-tls and AWS_CA_BUNDLE are obeyed, and HTTP/2 is
# used on request.
set -u
name=http-tls
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse curl nginx openssl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-lib.sh
. "$(dirname "$0")/http-lib.sh"

refused() {
	want=$1
	shift
	"$refrain" mount "$@" "$work/mnt" --cache "$work/tier:10M" \
		>"$work/said" 2>&1 && fail "mounted: $*"
	grep -q "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
}
refused 'redirect loop at' "http://127.0.0.1:$plain/loop"
refused 'HTTP status 404' "http://127.0.0.1:$plain/none"
refused 'self.signed.*AWS_CA_BUNDLE' "https://localhost:$tls/json"
AWS_CA_BUNDLE=$work/cert refused 'is for another host' \
	"https://127.0.0.1:$tls/json"
AWS_CA_BUNDLE=$work/none refused 'the file of AWS_CA_BUNDLE' \
	"https://localhost:$tls/json"
AWS_CA_BUNDLE=$work/expired refused 'has expired.*clock' \
	"https://localhost:$over/json"
start_mount "https://localhost:$tls/json" "$work/mnt" \
	--cache "$work/tier:100M" --insecure-tls
expect 'limits that name the option' \
	"$("$refrain" status "$mnt" --json | grep -c insecure-tls)" 1
stop_mount
AWS_CA_BUNDLE=$work/cert
export AWS_CA_BUNDLE
start_mount "https://localhost:$tls/json" "$work/mnt" --cache "$work/tier:100M"
scan_through
diff -r "$src" "$mnt" || fail 'https: the mount differs'
stop_mount
rm -rf "$work/tier"
! grep -q 'HTTP/2' "$work/access" || fail 'HTTP/2 without being asked for'
start_mount "https://localhost:$tls/json" "$work/mnt" \
	--cache "$work/tier:100M" --http2
scan_through
diff -r "$src" "$mnt" || fail 'HTTP/2: the mount differs'
stop_mount
grep -q 'HTTP/2' "$work/access" || fail 'no HTTP/2'

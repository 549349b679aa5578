#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Redirect loops, an index that is too long, and a server without TLS: the mount
# names the cause in one line, without the query of an address.
set -u
name=http-odd-refused
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-odd-lib.sh
. "$(dirname "$0")/http-odd-lib.sh"

# -- A redirect loop below the root is named, without its query
rm -rf "$work/tier"
start_mount "http://127.0.0.1:$port/loop-below/" "$work/mnt" \
	--cache "$work/tier:20M"
logs "'d': redirect loop at '127.0.0.1:$port': .* mount the final address"
"$refrain" status "$mnt" >"$work/said"
grep -q "redirect loop at '127.0.0.1:$port'" "$work/said" ||
	fail "status says $(cat "$work/said")"
! grep -q 'geheim\|symbolic' "$work/said" "$daemon_err" ||
	fail 'a redirect is shown with its query, or as a link'
stop_mount

# -- TLS that is none, and a certificate of another host or time
refused() {
	want=$1
	shift
	"$refrain" mount "$@" "$work/mnt" --cache "$work/other:10M" \
		>"$work/said" 2>&1 && fail "mounted: $*"
	grep -q "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
	expect "lines of $want" "$(wc -l <"$work/said")" 1
}
refused "redirect loop at '127.0.0.1:$port'.* mount the final address" \
	"http://127.0.0.1:$port/round"
! grep -q geheim "$work/said" || fail 'the query of a redirect is shown'
refused 'index of .* is longer than 48 MiB' "http://127.0.0.1:$port/long/d"
refused 'does not agree on TLS; check' "https://127.0.0.1:$port/json"

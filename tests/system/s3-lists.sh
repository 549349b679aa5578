#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Listings of a store: a page that takes long is waited for, an index is made
# without a mount, and listings without sizes or without an end are given up at
# once.
set -u
name=s3-lists
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-reads-lib.sh
. "$(dirname "$0")/s3-reads-lib.sh"

# -- The daemon waits for a page that takes longer to begin than a read may
s3_mount many
scan_through
far_zero
far_set list_ms=6000
"$refrain" refresh "$mnt" >/dev/null || fail 'a slow page ends a refresh'
far_set list_ms=0
expect 'list requests of a slow page' "$(far_count lists)" 1
stop_mount
rm -rf "$work/tier"

# -- An index without a mount
"$refrain" index s3://many --endpoint-url "$far" -o "$work/index" ||
	fail 'no index'
expect 'files of the index' "$(grep -c '\.bin' "$work/index")" 300

# Listings without sizes, and endless pages without keys, even from a bucket
# without an order: no listing is repeated.
far_put flat--x-s3/file a
# lists_once SETTING LISTS
lists_once() {
	far_zero
	far_set "$1"
	"$refrain" refresh "$mnt" >"$work/said" 2>&1 && fail "$1: refreshed"
	expect "$1: list requests" "$(far_count lists)" "$2"
	far_set "${1%=*}=0"
}
for bucket in many flat--x-s3; do
	s3_mount $bucket
	scan_through
	lists_once no_size=1 1
	lists_once blank=2 1001
	stop_mount
	rm -rf "$work/tier"
done
far_set endless=1
s3_mount many
wait_for 20 has_status scan incomplete || fail 'an endless listing goes on'
far_set endless=0
stop_mount
rm -rf "$work/tier"
! grep -rq 'Secret/' "$work"/daemon.*.err || fail 'a secret is in the log'

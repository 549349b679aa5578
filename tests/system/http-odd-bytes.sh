#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Web servers that answer with something other than the file, or without ranges:
# such bytes are not served, and the log says why.
set -u
name=http-odd-bytes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-odd-lib.sh
. "$(dirname "$0")/http-odd-lib.sh"

habit no-ranges
cmp "$src/small" "$mnt/small" || fail 'a small file without ranges'
no_bytes big 'the server has no ranges'
stop_mount
habit login
no_bytes big 'it has neither a version nor a size'
stop_mount
# The size of a login page is never taken for the size of the file
habit login-sized --revalidate 1 --timeout 2
no_bytes small 'it has neither an ETag nor a time'
no_bytes small 'it has neither an ETag nor a time'
expect 'size of a file that cannot be asked for' \
	"$(stat -c %s "$mnt/small")" "$(stat -c %s "$src/small")"
stop_mount
# Ranges that continue without end after their last byte
habit longer --chunk 64K --limit 64K
diff -r "$src" "$mnt" || fail 'longer: the mount differs'
expect 'ranges that were given up' "$(status_field origin_errors)" 0
stop_mount
# A signed address may be long, and end like the address of a directory
habit signed --revalidate 1
diff -r "$src" "$mnt" || fail 'signed: the mount differs'
looks_twice() {
	stat "$mnt/small" >/dev/null
	[ "$(asked HEAD "$1")" -ge 2 ]
}
wait_for 10 looks_twice 'small?x*/' || fail 'signed: no look at the server'
[ -f "$mnt/small" ] || fail 'signed: the file became a directory'
stop_mount
# A redirect that cannot be followed is not repeated, except for the kernel
for h in nowhere elsewhere; do
	habit $h
	no_bytes small 'its HTTP status is 302'
	[ "$(asked GET small)" -le 2 ] || fail "$h is asked for again"
	stop_mount
done
# A redirect to a login page does not make a directory of a file
habit guarded --revalidate 1 --timeout 2
wait_for 10 looks_twice login/ || fail 'guarded: no look at the server again'
[ -f "$mnt/small" ] || fail 'guarded: the file became a directory'
stop_mount
habit encoded
no_bytes small 'it has a Content-Encoding'
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Web servers with odd habits whose files can still be served: servers that fail
# or close connections at first, WebDAV that fails for a while, invalid names,
# and files without times.
set -u
name=http-odd
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-odd-lib.sh
. "$(dirname "$0")/http-odd-lib.sh"

# -- A start goes on after a 502 and a connection that is closed
habit flaky
expect 'files of a server that failed' "$(find "$mnt" -type f | wc -l)" 2
stop_mount

# -- A server may close the connection on a method that it does not know
habit closes
diff -r "$src" "$mnt" || fail 'closes: the mount differs'
stop_mount

# -- A server with WebDAV is not asked for another index if it fails for a while
habit dav
diff -r "$src" "$mnt/d" || fail 'dav: a directory differs'
expect 'files of a server with WebDAV' "$(find "$mnt" -type f | wc -l)" 4
expect 'GETs of its index' "$(asked GET '')" 0
expect 'GETs of an index below it' "$(asked GET d/)" 0
stop_mount

# -- Names that are none are hidden, counted and named
habit names
diff -r "$src" "$mnt" || fail 'other names'
expect hidden "$(status_field origin_hidden)" 2
logs "hiding '../up'"
stop_mount

# -- An index may have times even if the answers for the files have none
habit no-times --revalidate 1
diff -r "$src" "$mnt" || fail 'files without times'
looks_again() {
	cmp "$src/small" "$mnt/small" || fail 'a file without a time, again'
	[ "$(asked HEAD small)" -gt 0 ]
}
wait_for 10 looks_again || fail 'no look at the server again'
looks_again
expect 'errors at files without times' "$(status_field origin_errors)" 0
stop_mount

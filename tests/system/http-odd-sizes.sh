#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Web servers that report sizes in odd ways: the size of each file is requested
# once. A file with only errors is hidden and counted. If a server has errors
# for all files, no name is lost.
set -u
name=http-odd-sizes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-odd-lib.sh
. "$(dirname "$0")/http-odd-lib.sh"

# -- Each file is asked for its size once: by HEAD, or by its first byte where
# HEAD is refused or does not tell it
for h in html html-no-head html-forbids-head html-fails-head html-shy; do
	habit $h
	diff -r "$src" "$mnt" || fail "$h: the mount differs"
	expect "$h: errors" "$(status_field origin_errors)" 0
	[ "$(asked HEAD big)" -le 1 ] || fail "$h: asked for a size twice"
	[ "$h" != html ] || expect 'HEADs of a file' "$(asked HEAD big)" 1
	stop_mount
done
habit html-no-size
expect 'files without a size' "$(find "$mnt" -type f | wc -l)" 0
expect hidden "$(status_field origin_hidden)" 2
logs 'hiding .*its size is unknown'
stop_mount

# -- A file that the server answers only with errors is hidden and counted, the
# rest is served. It is asked for a few times, in case the server recovers
habit html-ill
expect 'files beside those with errors' "$(find "$mnt" -type f | wc -l)" 3
cmp "$src/big" "$mnt/big" || fail 'big beside files with errors'
cmp "$src/small" "$mnt/ill-for-a-while" || fail 'a file with errors at first'
expect hidden "$(status_field origin_hidden)" 5
# the start has sent the first one
expect 'GETs of the index' "$(asked GET '')" 2
expect 'HEADs of an error 500' "$(asked HEAD ill-500)" 1
expect 'GETs of an error 500' "$(asked GET ill-500)" 5
expect 'GETs of an error 400' "$(asked GET ill-400)" 1
expect 'HEADs of a redirect loop' "$(asked HEAD ill-loop)" 6
[ "$(asked HEAD ill-dead)" -le 5 ] || fail 'a dead host is asked again'
logs "hiding 'ill-.*', because the server answers only errors for it"
stop_mount

# -- If it has errors for a file, too, that it had before, the failure is the
# server's, and names stay as they were. Nothing is known of one that never had
# a file
habit html-two
diff -r "$src" "$mnt/up" || fail 'two: the mount differs'
expect 'files without a size' "$(find "$mnt/down" -type f | wc -l)" 0
expect hidden "$(status_field origin_hidden)" 40
python3 -c "import urllib.request
urllib.request.urlopen('http://127.0.0.1:$port/html-two/break').read()"
mark=$(wc -l <"$work/asked")
"$refrain" refresh "$mnt" >"$work/said" 2>&1 && fail 'a refresh without sizes'
expect 'names of a server with errors' "$(find "$mnt/up" -type f | wc -l)" 2
expect 'hidden by an outage' "$(status_field origin_hidden)" 40
n=$(asked '[A-Z]*' 'down-..')
[ "$n" -le 400 ] || fail "sizes asked for in an outage: $n"
stop_mount
mark=$(wc -l <"$work/asked")
rm -rf "$work/tier"
start_mount "http://127.0.0.1:$port/html-down/" "$work/mnt" \
	--cache "$work/tier:20M"
wait_for 30 has_status scan incomplete || fail 'errors alone are an empty scan'
expect 'hidden without a witness' "$(status_field origin_hidden)" 0
n=$(asked '[A-Z]*' 'down-..')
[ "$n" -le 400 ] || fail "a server of errors was asked for $n sizes"
stop_mount

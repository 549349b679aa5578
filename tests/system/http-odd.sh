#!/bin/sh
# SPDX-License-Identifier: MIT
# Web servers that have no ranges, sizes or HEAD, that answer with something
# other than the file, or whose directories never end: what can be served is
# served, the rest is hidden or an error, and the log says why. Errors of TLS
# are named.
set -u
name=http-odd
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse python3
[ -x tests/system/far ] || skip 'built without http and s3'
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
here=$(dirname "$0")

mkfifo "$work/odd.in"
python3 "$here/odd_server.py" <"$work/odd.in" >"$work/odd.out" \
	2>"$work/asked" &
ends_with_test $!
exec 8>"$work/odd.in"
wait_for 10 test -s "$work/odd.out" || fail 'the server does not start'
port=$(cat "$work/odd.out")
python3 -c "import os, sys
sys.path.insert(0, '$here')
sys.dont_write_bytecode = True
import odd_server
for name, data in odd_server.FILES.items():
    with open(os.path.join('$src', name), 'wb') as f:
        f.write(data)"

# habit NAME [OPTION ...]: a mount of it, with nothing cached.
habit() {
	rm -rf "$work/tier"
	mark=$(wc -l <"$work/asked")
	what=$1
	shift
	start_mount "http://127.0.0.1:$port/$what/" "$work/mnt" \
		--cache "$work/tier:20M" --timeout 20 "$@"
	scan_through
}

# asked METHOD NAME: how often, since the mount began.
asked() {
	tail -n "+$((mark + 1))" "$work/asked" | grep -c "^$1 .*/$2\$"
}

logs() {
	wait_for 10 grep -q "$1" "$daemon_err" || fail "the log lacks: $1"
}

# no_bytes FILE WHY: reading it is an error, and the log says why.
no_bytes() {
	cat "$mnt/$1" >"$work/got" 2>"$work/said" && fail "$1 was read"
	[ ! -s "$work/got" ] || fail "bytes of $1 were served"
	grep -q 'Input/output error' "$work/said" || fail "$(cat "$work/said")"
	logs "'$1' cannot be used: $2"
}

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
expect 'GETs of the index' "$(asked GET '')" 2 # the first by the start
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

# -- An index may have times though the files have none
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

# -- What is not the file is not served
habit no-ranges
cmp "$src/small" "$mnt/small" || fail 'a small file without ranges'
no_bytes big 'the server has no ranges'
stop_mount
habit login
no_bytes big 'it has neither a version nor a size'
stop_mount
# Its size is not taken for that of the file, whoever asks
habit login-sized --revalidate 1 --timeout 2
no_bytes small 'it has neither an ETag nor a time'
no_bytes small 'it has neither an ETag nor a time'
expect 'size of a file that cannot be asked for' \
	"$(stat -c %s "$mnt/small")" "$(stat -c %s "$src/small")"
stop_mount
# Ranges that go on without an end, long after their last byte
habit longer --chunk 64K --limit 64K
diff -r "$src" "$mnt" || fail 'longer: the mount differs'
expect 'ranges that were given up' "$(status_field origin_errors)" 0
stop_mount
# An address that was signed may be long, and end like a directory's
habit signed --revalidate 1
diff -r "$src" "$mnt" || fail 'signed: the mount differs'
looks_twice() {
	stat "$mnt/small" >/dev/null
	[ "$(asked HEAD "$1")" -ge 2 ]
}
wait_for 10 looks_twice 'small?x*/' || fail 'signed: no look at the server'
[ -f "$mnt/small" ] || fail 'signed: the file became a directory'
stop_mount
# A redirect that cannot be followed is not asked for again, but by the kernel
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

# -- Directories without an end
habit endless
expect directories "$(find "$mnt" -mindepth 1 -type d | wc -l)" 32
logs "hiding 'd', because"
stop_mount
rm -rf "$work/tier"
start_mount "http://127.0.0.1:$port/branching/" "$work/mnt" \
	--cache "$work/tier:20M"
wait_for 30 has_status scan incomplete ||
	fail 'a listing of directories without an end goes on'
logs 'directories seem to have no end'
stop_mount

# -- An index that is too long is asked for once, and the log says why
mark=$(wc -l <"$work/asked")
rm -rf "$work/tier"
start_mount "http://127.0.0.1:$port/long/" "$work/mnt" --cache "$work/tier:20M"
wait_for 30 has_status scan incomplete ||
	fail 'the listing of an index that is too long goes on'
expect 'GETs of a long index' "$(asked GET d/)" 1
stop_mount

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

# -- A key that a store lists out of order is hidden, counted and named
rm -rf "$work/tier"
start_mount s3://bucket "$work/mnt" --cache "$work/tier:20M" \
	--no-sign-request --endpoint-url "http://127.0.0.1:$port"
scan_through
expect 'files of a listing out of order' "$(find "$mnt" -type f | wc -l)" 3
expect 'keys out of order' "$(status_field origin_hidden)" 1
logs "hiding 'a'"
stop_mount

# -- A listing whose pages all have the same key, with one token or many
for b in still-here still-moving; do
	mark=$(wc -l <"$work/asked")
	rm -rf "$work/tier"
	start_mount s3://$b "$work/mnt" --cache "$work/tier:20M" \
		--no-sign-request --endpoint-url "http://127.0.0.1:$port"
	logs 'listing does not advance: .* --manifest'
	n=$(tail -n "+$((mark + 1))" "$work/asked" | wc -l)
	[ "$n" -le 40 ] || fail "$b: one page was asked for $n times"
	stop_mount
done

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

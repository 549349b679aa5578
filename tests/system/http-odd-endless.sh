#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Directories and listings of web servers and stores that have no end, are out
# of order, or do not advance: they are given up, hidden or counted, and the log
# says why.
set -u
name=http-odd-endless
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-odd-lib.sh
. "$(dirname "$0")/http-odd-lib.sh"

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

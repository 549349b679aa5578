#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A source on which every access hangs in the kernel, with a kept manifest, and
# a link on the way to it: cached files are served, a miss fails after
# --timeout, and reads work again when the source answers.
set -eu
name=origin-hung-kept
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/origin-hung-lib.sh
. "$(dirname "$0")/origin-hung-lib.sh"

hanging_source
daemon=
start_mount "$work/far" "$mnt" --cache "$work/c:9M"
expect 'a file of it' "$(cat "$mnt/top1/d7/f")" 7
scan_through
stop_mount

ln -s far "$work/link"
stop_process "$far"
begun=$(date +%s)
start_mount "$work/link" "$mnt" --cache "$work/c:9M" --timeout 2 \
	--log-file "$work/log"
took=$(($(date +%s) - begun))
[ $took -le $((8 * patience)) ] || fail "a mount takes $took s"
wait_for 10 grep -q \
	"^refrain: source '$work/link' does not answer: until it does" \
	"$daemon_err" || fail "$(cat "$daemon_err")"
wait_for 10 grep -q "source '$work/far' does not answer" "$work/log" ||
	fail "$(cat "$work/log")"
expect 'a file of the cache' "$(cat "$mnt/top1/d7/f")" 7
begun=$(date +%s)
cat "$mnt/top2/d8/f" >"$work/out" 2>"$work/err" && fail 'a miss is read'
grep -q 'Input/output error' "$work/err" || fail "$(cat "$work/err")"
took=$(($(date +%s) - begun))
[ $took -le $((10 * patience)) ] || fail "a miss fails after $took s"
kill -CONT $far
expect 'the miss' "$(cat "$mnt/top2/d8/f")" 8
# No thread of the daemon may wait in the kernel when the source stops, because
# no signal would end that.
scan_through
stop_process "$far"
"$refrain" umount "$mnt" || fail 'cannot unmount'
daemon_ended
kill -CONT $far

hanging_source_ends

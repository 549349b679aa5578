#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load` on a mount that hangs, either when it is opened or while it is
# read, ends in time and says where it waited.
set -eu
name=load-hung-mount
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}
start_mount "$data" "$mnt" --cache "$work/tier:1M"
scan_through
# Measure a run in which nothing hangs, because a busy machine is slow.
began=$(now_ms)
"$refrain" load "$data" --batch 4 >/dev/null || fail "load '$data'"
usual_ms=$(($(now_ms) - began))
# Opening hangs, because the kernel has the name of the root, but not the names
# in it.
stop_process "$daemon"
stopped=$(now_ms)
status=0
# A search for leaks would first have to stop the thread that hangs.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
	"$refrain" load "$mnt" --batch 4 --timeout 1 \
	>"$work/out" 2>"$work/err" || status=$?
took_ms=$(($(now_ms) - stopped))
kill -CONT "$daemon"
expect 'exit status of an open that hangs' $status 1
grep -q "opening '$mnt': no answer for 1.0 s while " "$work/err" ||
	fail "it does not say where: $(cat "$work/err")"
[ $took_ms -lt $((2500 * patience + 3 * usual_ms)) ] ||
	fail "that took $took_ms ms"
note "an open that hangs is left after $took_ms ms: $(cat "$work/err")"

rm -f "$work/err"
: >"$work/trace"
# Files in the tier could be read without the mount.
"$refrain" load "$mnt" --batch 4 --reads-ahead 8 --batches-ahead 2 \
	--no-mount-help --step-ms 20 --timeout 1 --trace "$work/trace" \
	>"$work/out" 2>"$work/err" &
loader=$!
some_lines() {
	[ "$(wc -l <"$work/trace")" -ge 12 ]
}
wait_for 20 some_lines || fail 'the loader does not start on a mount'
stop_process "$daemon"
stopped=$(now_ms)
wait_for 20 test -s "$work/err" || {
	kill -CONT "$daemon"
	fail 'no time-out on a mount that hangs'
}
took_ms=$(($(now_ms) - stopped))
kill -CONT "$daemon"
status=0
wait $loader || status=$?
expect 'exit status on a mount that hangs' $status 1
grep -q read "$work/err" || fail "it does not say where: $(cat "$work/err")"
# The limit is the time-out, a second for the end, and the time of batches that
# were ready or are slow on this machine.
[ $took_ms -lt $((4000 * patience + 3 * usual_ms)) ] ||
	fail "that took $took_ms ms"
stop_mount
note "a mount that hangs is left after $took_ms ms"

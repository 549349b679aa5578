#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A source that answers nothing (O5), or holds in the kernel whoever looks at
# it: a mount with a kept manifest does not wait for it, a refresh ends within
# twice --timeout and says why, and what is cached is served. And `verify` of a
# mount whose tier's path is not UTF-8.
set -eu
name=hung-source
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse

# More directories than a walk lists at a time, several times over.
for d in $(seq 60); do
	mkdir -p "$src/top$((d % 3))/d$d"
	echo "$d" >"$src/top$((d % 3))/d$d/f"
done
cache=$work/$(printf 'caf\351')

start_mount "$src" "$mnt" --cache "$cache:20M"
scan_through
"$refrain" warm "$mnt" >/dev/null || fail 'cannot warm'
"$refrain" verify "$mnt" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
grep -q '^60 entries .* 0 bad' "$work/out" || fail "$(cat "$work/out")"
stop_mount

# A mount that waited for its source would be given up before that.
start_mount "$src" "$mnt" --cache "$cache:20M" --timeout 600 \
	--fault stall=1,meta=1
expect 'a file of the cache' "$(cat "$mnt/top1/d7/f")" 7
stop_mount

timeout_s=$((3 * patience))
start_mount "$src" "$mnt" --cache "$cache:20M" --timeout $timeout_s --fault ''
# How long that takes here when nothing hangs: busy machines are slow.
begun=$(date +%s)
"$refrain" refresh "$mnt" >"$work/out" || fail 'cannot refresh'
usual_s=$(($(date +%s) - begun + 1))
"$refrain" fault "$mnt" stall=1,meta=1
begun=$(date +%s)
"$refrain" refresh "$mnt" >"$work/out" 2>"$work/err" && fail 'it is refreshed'
took=$(($(date +%s) - begun))
[ $took -le $((2 * timeout_s + usual_s)) ] || fail "a refresh takes $took s"
grep -q 'could not be listed.*timed out' "$work/err" ||
	fail "$(cat "$work/err")"
begun=$(date +%s)
"$refrain" refresh "$mnt" top0/d3 top1/d1 top2/d2 top0/d6 top1/d4 top2/d5 \
	>"$work/out" 2>"$work/err" && fail 'paths are refreshed'
took=$(($(date +%s) - begun))
[ $took -le $((2 * timeout_s + usual_s)) ] ||
	fail "a refresh of paths takes $took s"
grep -q "6 directories could not be listed, first 'top0/d3'" "$work/err" ||
	fail "$(cat "$work/err")"
expect 'a file of the cache' "$(cat "$mnt/top2/d8/f")" 8
"$refrain" fault "$mnt" ''
"$refrain" refresh "$mnt" >"$work/out" || fail 'no refresh afterwards'
stop_mount

# A source that holds whoever looks at it in the kernel: a mount ends after
# --timeout and says why.
mkdir "$work/far"
"$helpers/failing_fs" "$src" "$work/far" "$work/switch" 2>"$work/far.err" &
far=$!
daemon=$far # ends with the test
wait_for 10 test -d "$work/far/top1" || skip "$(cat "$work/far.err")"
trap 'status=$?; set +e; kill -9 $far 2>/dev/null; (exit $status); cleanup' EXIT
stop_process "$far"
begun=$(date +%s)
"$refrain" mount "$work/far" "$mnt" --cache "$work/c:9M" --timeout 2 \
	2>"$work/err" && fail 'it is mounted'
took=$(($(date +%s) - begun))
[ $took -le $((8 * patience)) ] || fail "a mount takes $took s"
grep -q "^refrain: mount: source '$work/far' has not answered in 2 s" \
	"$work/err" || fail "$(cat "$work/err")"
kill -CONT $far
daemon=
start_mount "$work/far" "$mnt" --cache "$work/c:9M"
expect 'a file of it' "$(cat "$mnt/top1/d7/f")" 7
scan_through
stop_mount

# The same with a kept manifest, and a link on the way to it: what is cached is
# served, a miss fails after --timeout, and all is well when the source answers.
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
# Nothing of the daemon may wait in the kernel when the source stops: no signal
# ends that.
scan_through
stop_process "$far"
"$refrain" umount "$mnt" || fail 'cannot unmount'
daemon_ended
kill -CONT $far

# A directory in it, by a link into it.
ln -s far/top1 "$work/link1"
start_mount "$work/link1" "$mnt" --cache "$work/c1:9M"
expect 'a file of it' "$(cat "$mnt/d7/f")" 7
scan_through
stop_mount
stop_process "$far"
start_mount "$work/link1" "$mnt" --cache "$work/c1:9M" --timeout 1
expect 'a file of the cache' "$(cat "$mnt/d7/f")" 7
kill -CONT $far
stop_mount
fusermount3 -u "$work/far" || umount "$work/far"
wait $far || :

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A source on which every access hangs in the kernel: `refrain mount` ends after
# --timeout and says why. It mounts once the source answers.
set -eu
name=origin-hung-mount
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/origin-hung-lib.sh
. "$(dirname "$0")/origin-hung-lib.sh"

hanging_source
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

hanging_source_ends

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A refresh of a source that answers nothing (O5), of the whole mount or of
# paths, ends within twice --timeout and says why. Cached files are served
# meanwhile, and a refresh works again when the source answers.
set -eu
name=origin-silent-refresh
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/origin-hung-lib.sh
. "$(dirname "$0")/origin-hung-lib.sh"

warm_tier
stop_mount

timeout_s=$((3 * patience))
start_mount "$src" "$mnt" --cache "$cache:20M" --timeout $timeout_s --fault ''
# Measure a refresh while nothing hangs, because a busy machine is slow.
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

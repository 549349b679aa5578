#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A run of `refrain load --echo auto` refuses a log that has fewer changes than
# its state.
set -eu
name=load-auto-short-log
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-auto-lib.sh
. "$(dirname "$0")/load-auto-lib.sh"

killed_while_it_echoes
load "$work/data" --echo auto --echo-log "$work/log" --epochs 2 \
	--state "$work/state" --trace "$work/trace"
holds "$(value echo_changes) >= 1"
: >"$work/log"
"$refrain" load "$work/data" --batch $batch --size 32 --seed 5 --window 512 \
	--epochs 2 --echo auto --echo-log "$work/log" --state "$work/state" \
	>/dev/null 2>"$work/err" && fail 'a log that is too short is taken'
grep -q 'fewer' "$work/err" || fail "$(cat "$work/err")"
stop_mount

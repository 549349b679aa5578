#!/bin/sh
# SPDX-License-Identifier: MIT
#
# After a kill, `refrain load --echo auto` continues with its log. Replaying the
# log gives the stream of both runs.
set -eu
name=load-auto-killed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-auto-lib.sh
. "$(dirname "$0")/load-auto-lib.sh"

killed_while_it_echoes
load "$work/data" --echo auto --echo-log "$work/log" --epochs 2 \
	--state "$work/state" --trace "$work/trace"
holds "$(value echo_changes) >= 1"
expect 'lines of both logs' "$(wc -l <"$work/log")" "$(value echo_changes)"
load "$work/data" --echo auto --echo-replay "$work/log" --epochs 2 \
	--trace "$work/trace.again"
cmp "$work/trace" "$work/trace.again" ||
	fail 'the log does not make the stream of both runs'
stop_mount

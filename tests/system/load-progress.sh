#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The progress of `refrain load --echo auto` on a terminal ends at 100 %.
set -eu
name=load-progress
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires script
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

# A decoder that is slower than the trainer, so that the factor rises.
"$refrain" make-dataset --classes 2 --images 200 --size 640x480 \
	"$work/slow" >/dev/null
script -qec "'$refrain' load '$work/slow' --batch 4 --epochs 8 \
	--echo auto --threads 1 --window 256 --size 32 --step-ms 1 \
	--batches-ahead 2 --reads-ahead 8" "$work/typed" >"$work/out"
grep -q '^factor' "$work/out" || fail 'load --echo auto on a terminal'
tr '\r' '\n' <"$work/out" | sed -n 's/.*\] *\([0-9]*\) %.*/\1/p' \
	>"$work/percents"
[ -s "$work/percents" ] || fail 'no progress was shown'
over=$(awk '$1 > 100' "$work/percents" | head -n 1)
[ -z "$over" ] || fail "--echo auto: the progress is $over %"
note 'the progress ends at 100 %'

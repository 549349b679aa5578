#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load --echo auto` with steps of a fixed time, while the speed of its
# disk changes. Measures, from three windows after each change on, how far the
# echo factor is from R, and the step rate as a share of the best possible one.
#
#   SPEEDS='3.5 1.5 0.7 2.5' STEP_MS=40 READS_AHEAD=64 bench/speeds.sh
#
# SPEEDS are values of R, the time that the disk takes for a batch over that of
# a step. Prints a table and writes bench-speeds.json. Needs root or sudo, loop
# devices and a control group that throttles.
set -u
name=speeds
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

speeds=${SPEEDS:-3.5 1.5 0.7 2.5} step_ms=${STEP_MS:-40}
batch=32 file_bytes=112640 images=${IMAGES:-20000}
XDG_CACHE_HOME=$work/index
export XDG_CACHE_HOME

slow_root || bench_skip "$slow_why"

rate_of() {
	awk -v r="$1" -v b=$((file_bytes * batch)) -v ms="$step_ms" \
		'BEGIN { printf("%.0f\n", b * 1000 / ms / r) }'
}

# change R: set the speed of the disk; a line in $work/marks has the time.
change() {
	slow_disk_rate "$(rate_of "$1")" || bench_fail "the speed stays"
	python3 -c 'import sys, time; print(time.monotonic_ns(), sys.argv[1])' \
		"$1" >>"$work/marks"
}

echo "speeds: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
"$refrain" make-dataset --classes 10 --images "$images" --size 48x36 \
	"$work/data" >/dev/null || bench_fail "no dataset"
python3 "$bench/epoch.py" --pad "$work/data" --file-bytes $file_bytes ||
	bench_fail "no dataset"
slow_disk_make "$work" "$work/data" 1000000000 || bench_skip "$slow_why"
rm -rf "$work/data"
# Make the index of the dataset before the disk is slow.
"$refrain" load "$slow_dir" --batch $batch --size 32 --steps 1 --json \
	>/dev/null || bench_fail "loading failed"
forget
change "${speeds%% *}"
slow_disk_run "$refrain" load "$slow_dir" --batch $batch --size 32 --seed 1 \
	--step-ms "$step_ms" --reads-ahead "${READS_AHEAD:-64}" --echo auto \
	--echo-log "$work/changes" --step-log "$work/steps" --json \
	>"$work/load" 2>"$work/err" &
loader=$!
# Long enough for some steps after three windows.
first=1
for r in $speeds; do
	[ $first -eq 1 ] || change "$r"
	first=0
	sleep "$(awk -v r="$r" -v ms="$step_ms" -v b=$batch 'BEGIN {
		e = r < 1 ? 1 : r
		print 1.5 + 4.2 * 992 / b * ms / 1000 * e
	}')"
done
slow_disk_kill
wait $loader
python3 "$bench/speeds.py" --marks "$work/marks" --changes "$work/changes" \
	--steps "$work/steps" --step-ms "$step_ms" --batch $batch \
	--machine "$(machine)" --json "$json_out" ||
	bench_fail "the logs say nothing"

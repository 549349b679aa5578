#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load --echo auto` on a mount that holds half of the dataset and
# fetches the rest by the loader's plan. Measures, from three windows after each
# change of the source's speed on, how far the echo factor is from R, and the
# step rate as a share of the best possible one. Also the time of epochs from
# the third on compared with the best possible one, the bytes fetched in vain,
# and whether the fetched bytes are those that were missing.
#
#   RUNS='rate:2.5 delay:1.5 rate:3.5,1.5,0.7,2.5' bench/plan-auto.sh
#
# A run is what limits the source (its rate, its delay, or both at once) and
# values of R, each for EPOCHS epochs. Prints a table and writes
# bench-plan-auto.json. Needs FUSE.
set -u
name=plan-auto
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

runs=${RUNS:-rate:0.6 rate:1.5 rate:2.5 rate:6 delay:0.6 delay:1.5 delay:2.5
	both:2 rate:3.5,1.5,0.7,2.5 delay:3.5,1.5,0.7,2.5}
step_ms=${STEP_MS:-40} ahead=${READS_AHEAD:-64} epochs=${EPOCHS:-6}
images=${IMAGES:-3000} file_bytes=112640 batch=32 depth=64
staging=${STAGING:-32M}
XDG_CACHE_HOME=$work/index
export XDG_CACHE_HOME

[ -w /dev/fuse ] || bench_skip 'cannot open /dev/fuse'
"$refrain" make-dataset --classes 10 --images "$images" --size 48x36 \
	"$work/data" >/dev/null || bench_fail "no dataset"
python3 "$bench/epoch.py" --pad "$work/data" --file-bytes $file_bytes ||
	bench_fail "no dataset"
mkdir "$mnt"

# speed KIND R: print the faults with which fetching the misses of a batch takes
# R steps.
speed() {
	awk -v kind="$1" -v r="$2" -v ms="$step_ms" -v n=$((batch / 2)) \
		-v bytes=$file_bytes -v depth=$depth 'BEGIN {
		t = r * ms
		if (kind != "delay")
			rate = sprintf("rate=%.0fK", n * bytes / t / 1.024)
		if (kind != "rate")
			delay = sprintf("delay=%.0fms", t * depth / n)
		print rate (rate && delay ? "," : "") delay
	}'
}

mark() {
	python3 -c 'import sys, time
print(time.monotonic_ns(), *sys.argv[1:])' "$@" >>"$work/marks"
}

# The loader creates the log when it begins.
epochs_ended() {
	{ cat "$work/steps" 2>/dev/null || :; } |
		awk '{ n += $5 } END { print n + 0 }'
}

measure() {
	kind=${1%:*} speeds=$(echo "${1#*:}" | tr , ' ')
	count=$(echo "$speeds" | wc -w)
	rm -rf "$work/tier" "$work/marks"
	"$refrain" mount "$work/data" "$mnt" --pages 1M --limit 1M \
		--staging "$staging" \
		--cache "$work/tier:$((images * (file_bytes + 4096) / 2048))K" \
		--fault "$(speed "$kind" "${speeds%% *}")" ||
		bench_fail "no mount"
	until "$refrain" status "$mnt" --json | grep -q '"scan":"complete"'; do
		sleep 0.1
	done
	mark "${speeds%% *}" "$(speed "$kind" "${speeds%% *}")"
	"$refrain" load "$mnt" --batch $batch --size 32 --seed 1 \
		--step-ms "$step_ms" --reads-ahead "$ahead" --echo auto \
		--epochs $((count * epochs)) --threads 1 \
		--echo-log "$work/changes" --step-log "$work/steps" --json \
		>"$work/load" 2>"$work/err" &
	loader=$!
	ended=0
	for r in $speeds; do
		if [ $ended -gt 0 ]; then
			until [ "$(epochs_ended)" -ge $ended ] ||
				! kill -0 $loader 2>/dev/null; do
				sleep 0.02
			done
			"$refrain" fault "$mnt" "$(speed "$kind" "$r")" ||
				bench_fail "the speed stays"
			mark "$r" "$(speed "$kind" "$r")"
		fi
		ended=$((ended + epochs))
	done
	wait $loader || bench_fail "$(cat "$work/err")"
	"$refrain" status "$mnt" --json >"$work/status"
	"$refrain" umount "$mnt" || bench_fail "it stays mounted"
	python3 "$bench/plan_auto.py" --run "$1" --work "$work" \
		--step-ms "$step_ms" --batch $batch --images "$images" \
		--file-bytes $file_bytes --depth $depth --bare-s "$bare_s" \
		--ahead "$ahead" || bench_fail "the logs say nothing"
	rm -f "$work/changes" "$work/steps"
}

# Measure a reader of the same files when all of them are cached.
bare() {
	"$refrain" mount "$work/data" "$mnt" --cache "$work/warm:90%" ||
		bench_fail "no mount"
	"$refrain" warm "$mnt" >/dev/null 2>&1 || bench_fail "cannot warm"
	bare_s=$("$reader" --epochs 1 --json "$mnt" | number seconds)
	"$refrain" umount "$mnt"
	rm -rf "$work/warm"
}

echo "plan-auto: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
bare
for run in $runs; do
	measure "$run"
done
python3 "$bench/plan_auto.py" --collect "$work" --json "$json_out" \
	--machine "$(machine)"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Direct hits: compares `refrain load` of a mount that has all of a dataset in a
# tier with the same files in the file system of the tier. Alternating pairs of
# runs, page cache warm, two threads; of photographs, of small images, and of
# DATA if it is set.
#
#   EPOCHS=4 PAIRS=9 [DATA=DIRECTORY SIZE=224] bench/direct.sh
#
# Prints a table and medians, and writes bench-direct.json.
set -u
name=direct
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

pairs=${PAIRS:-9} epochs=${EPOCHS:-4}
XDG_CACHE_HOME=$work/index
export XDG_CACHE_HOME

# load DIR SIZE: run it; its output is in $work/load.
load() {
	"$refrain" load "$1" --batch 64 --size "$2" --epochs "$epochs" \
		--threads 2 --seed 1 --json >"$work/load" ||
		bench_fail "loading $1 failed"
}

rate() {
	load "$1" "$2"
	number images_per_s <"$work/load"
}

# Reads that the mount has answered.
mount_reads() {
	"$refrain" status "$mnt" --json >"$work/status"
	echo $(($(number hits <"$work/status") +
		$(number misses <"$work/status")))
}

# compare WHAT DIR SIZE: print a row; sets $row.
compare() {
	"$refrain" mount "$2" "$mnt" --cache "$work/tier:8G" ||
		bench_fail "the mount failed"
	"$refrain" warm "$mnt" >/dev/null || bench_fail "warming failed"
	load "$2" "$3"
	load "$mnt" "$3"
	before=$(mount_reads)
	: >"$work/ratios"
	: >"$work/bare"
	: >"$work/ours"
	pair=1
	while [ $pair -le "$pairs" ]; do
		if [ $((pair % 2)) -eq 1 ]; then
			bare=$(rate "$2" "$3") ours=$(rate "$mnt" "$3")
		else
			ours=$(rate "$mnt" "$3") bare=$(rate "$2" "$3")
		fi
		ratio "$ours" "$bare" >>"$work/ratios"
		echo "$bare" >>"$work/bare"
		echo "$ours" >>"$work/ours"
		pair=$((pair + 1))
	done
	reads=$(($(mount_reads) - before))
	load "$mnt" "$3"
	[ "$(number direct_hits <"$work/load")" -eq \
		"$(number files_read <"$work/load")" ] ||
		bench_fail "not all of $1 were read in the tier"
	"$refrain" umount "$mnt" || bench_fail "the mount did not go away"
	rm -rf "$work/tier"
	bare=$(median <"$work/bare") ours=$(median <"$work/ours")
	all=$(median <"$work/ratios")
	printf '%-12s %14.0f %14.0f %8s %12d\n' \
		"$1" "$bare" "$ours" "$all" "$reads"
	row="{\"images\": \"$1\", \"bare\": $bare, \"mount\": $ours,
   \"median_ratio\": $all, \"mount_reads\": $reads}"
}

echo "direct: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
echo "images        bare images/s mount images/s    ratio  mount reads"
mkdir "$mnt"
# dataset NAME IMAGES SIZE: make a dataset in $work/NAME.
dataset() {
	"$refrain" make-dataset --classes 10 --images "$2" --size "$3" \
		"$work/$1" >/dev/null || bench_fail "no dataset"
}

dataset photographs 1000 500x375
dataset small 20000 32x32
compare photographs "$work/photographs" 224
rows=$row
compare small "$work/small" 32
rows="$rows,
  $row"
if [ -n "${DATA:-}" ]; then
	compare given "$DATA" "${SIZE:-224}"
	rows="$rows,
  $row"
fi
echo "bar for the ratio: 0.95"
cat >"$json_out" <<END
{"bench": "direct", "machine": "$(machine)", "epochs": $epochs,
 "pairs": $pairs, "rows": [
  $rows]}
END

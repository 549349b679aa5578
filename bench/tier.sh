#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Hits of a disk tier: eight threads read every file once from a mount whose
# tier has all of them. Compares with the same files in the ext4 file system of
# the tier. The kernel's caches are dropped and the mount is made anew before
# each epoch. Seven alternating pairs on the disk as it is, and seven on a
# throttled loop device, daemon and reader in its control group.
#
#   RATE=100000000 bench/tier.sh
#
# Prints tables and medians, and writes bench-tier.json. Needs root or sudo; for
# the throttled half loop devices and a control group that throttles.
set -u
name=tier
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

pairs=7 threads=8
file_bytes=112640 files=2000
rate=${RATE:-100000000}

slow_root || bench_skip "$slow_why"

# epoch_rate DIR: print files a second of one epoch, which $run runs.
epoch_rate() {
	$run "$reader" "$1" --threads $threads --seed "$pair" --json \
		>"$work/epoch" || bench_fail "reading $1 failed"
	number files_per_s <"$work/epoch"
}

bare_rate() {
	forget
	epoch_rate "$1/data"
}

mount_rate() {
	$run "$refrain" mount "$1/data" "$mnt" --cache "$1/cache:240M" ||
		bench_fail "the mount failed"
	forget
	epoch_rate "$mnt"
	misses=$("$refrain" status "$mnt" --json | number misses)
	[ "$misses" -eq 0 ] || bench_fail "$misses misses in a warm cache"
	"$refrain" umount "$mnt" || bench_fail "the mount did not go away"
}

# fill DIR: cache all of $DIR/data in $DIR/cache.
fill() {
	"$refrain" mount "$1/data" "$mnt" --cache "$1/cache:240M" ||
		bench_fail "the mount failed"
	"$refrain" warm "$mnt" >/dev/null || bench_fail "warming failed"
	"$refrain" umount "$mnt" || bench_fail "the mount did not go away"
}

# compare WHAT DIR: measure pairs of rates; sets $all, appends to $work/json.
compare() {
	echo "disk       pair  ext4 files/s  mount files/s   ratio"
	comma=''
	: >"$work/ratios"
	: >"$work/json"
	pair=1
	while [ $pair -le $pairs ]; do
		if [ $((pair % 2)) -eq 1 ]; then
			bare=$(bare_rate "$2") || exit 1
			ours=$(mount_rate "$2") || exit 1
		else
			ours=$(mount_rate "$2") || exit 1
			bare=$(bare_rate "$2") || exit 1
		fi
		r=$(ratio "$ours" "$bare")
		echo "$r" >>"$work/ratios"
		printf '%-9s  %4d  %12.1f  %13.1f  %6s\n' "$1" $pair \
			"$bare" "$ours" "$r"
		printf '%s{"bare": %s, "mount": %s}' "$comma" "$bare" \
			"$ours" >>"$work/json"
		comma=', '
		pair=$((pair + 1))
	done
	all=$(median <"$work/ratios")
	echo "median ratio: $all (bar 0.65, goal 0.8)"
}

echo "tier: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
mkdir "$mnt" "$work/disk"
files_of $file_bytes $files "$work/disk/data"

run=''
fill "$work/disk"
compare as-it-is "$work/disk"
plain=$all plain_pairs=$(cat "$work/json")
rm -rf "$work/disk/cache"

# The cache is filled before the device is throttled.
throttled=null throttled_pairs=''
if slow_disk_make "$work" "$work/disk" "$rate" \
	$((file_bytes * files * 12 / 10000000)); then
	rm -rf "$work/disk"
	fill "$slow_dir"
	run=slow_disk_run
	compare throttled "$slow_dir"
	throttled=$all throttled_pairs=$(cat "$work/json")
else
	echo "not measured on a throttled disk: $slow_why"
fi
cat >"$json_out" <<END
{"bench": "tier", "machine": "$(machine)", "median_ratio": $plain,
 "pairs": [$plain_pairs], "rate_bytes_per_s": $rate,
 "median_ratio_throttled": $throttled,
 "pairs_throttled": [$throttled_pairs]}
END

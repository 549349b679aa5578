#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A cold epoch: reads every file once through a mount with an empty cache, and
# compares with fio, which reads as many bytes of the same throttled loop device
# from end to end. Daemon and fio run in the same throttled control group,
# kernel caches dropped before each. Three alternating pairs.
#
# Prints a table and the median, and writes bench-cold.json. Needs root or
# sudo, loop devices, a control group that throttles, and fio.
set -u
name=cold
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

pairs=3 threads=8
file_bytes=112640 files=2000
rate=50000000

command -v fio >/dev/null || bench_skip "fio is not installed"
slow_root || bench_skip "$slow_why"

# Requests of 256 KiB: larger ones may have more segments than the device
# accepts, and the throttle charges a split request twice.
fio_rate() {
	forget
	slow_disk_run fio --name=cold --filename="$slow_loop" --readonly \
		--rw=read --bs=256k --direct=1 --ioengine=io_uring --iodepth=8 \
		--size=$((file_bytes * files)) --output-format=json \
		>"$work/fio" 2>&1 || bench_fail "fio: $(tail -n 3 "$work/fio")"
	# The first "bw_bytes" is that of the reads.
	sed -n 's/.*"bw_bytes" : \([0-9]*\).*/\1/p' "$work/fio" | head -n 1 |
		awk '{ printf("%.2f\n", $1 / 1e6) }'
}

# Empty the tier and the kernel's caches.
mount_rate() {
	slow_disk_run "$refrain" mount "$slow_dir" "$mnt" \
		--cache "$work/cache.$1:1G" || bench_fail "the mount failed"
	forget
	"$reader" "$mnt" --threads $threads --json >"$work/epoch" ||
		bench_fail "reading failed"
	number mb_per_s <"$work/epoch"
	"$refrain" umount "$mnt" || bench_fail "the mount did not go away"
	rm -rf "$work/cache.$1"
}

echo "cold: $(machine)"
files_of $file_bytes $files "$work/data"
slow_disk_make "$work" "$work/data" $rate || bench_skip "$slow_why"
rm -rf "$work/data"
mkdir "$mnt"

echo "pair      fio MB/s    mount MB/s   ratio"
pair=1 comma=''
while [ $pair -le $pairs ]; do
	if [ $((pair % 2)) -eq 1 ]; then
		fio=$(fio_rate) || exit 1
		ours=$(mount_rate $pair) || exit 1
	else
		ours=$(mount_rate $pair) || exit 1
		fio=$(fio_rate) || exit 1
	fi
	r=$(ratio "$ours" "$fio")
	echo "$r" >>"$work/ratios"
	printf '%4d  %12.2f  %12.2f  %6s\n' $pair "$fio" "$ours" "$r"
	printf '%s{"fio": %s, "mount": %s}' "$comma" "$fio" "$ours" \
		>>"$work/json"
	comma=', '
	pair=$((pair + 1))
done
all=$(median <"$work/ratios")
echo "median ratio: $all (bar 0.95)"
cat >"$json_out" <<END
{"bench": "cold", "machine": "$(machine)", "rate_bytes_per_s": $rate,
 "median_ratio": $all, "pairs": [$(cat "$work/json")]}
END

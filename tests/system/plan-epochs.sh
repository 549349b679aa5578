#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A loader that reads little ahead, on a distant source: everything that is
# fetched is used, and all bytes are accounted for. Prints the time of the
# slowest epoch from the third on, and that of the same trainer on the source
# itself. bench/plan-bars.sh checks this time, on a machine that does nothing
# else.
set -eu
name=plan-epochs
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout

size=50000
files=192
epochs=5

"$refrain" make-dataset "$work/one" --classes 1 --images 1 --size 64x64 \
	>/dev/null
find "$work/one" -name '*.jpg' -exec cp {} "$work/picture" \;
truncate -s $size "$work/picture"
mkdir "$src/c"
for i in $(seq $files); do
	cp "$work/picture" "$src/c/$i.jpg"
done

# train DIR READS_AHEAD: run the trainer; print the time of the slowest epoch
# from the third on, in us.
train() {
	timeout $((120 * patience)) "$refrain" load "$1" --batch 16 \
		--step-ms 25 --size 32 --threads 1 --reads-ahead "$2" \
		--epochs $epochs --step-log "$work/log" --json \
		>"$work/out" || fail 'the trainer'
	slowest=$(awk '$NF != 0 { if (++n > 2 && $2 - last > most)
		most = $2 - last; last = $2 } END { print most }' "$work/log")
}

loaded() {
	sed 's/[{,}]/\n/g' "$work/out" | sed -n "s/^ *\"$1\" *: *//p"
}

train "$src" 64
bare=$slowest
for ahead in 1 8; do
	start_mount "$src" "$mnt" --cache "$work/cache.$ahead:5M" --pages 1M \
		--fault delay=100ms
	scan_through
	dropped=$(drops)
	train "$mnt" $ahead
	note "reads ahead $ahead: $slowest us, $bare on the source itself"
	expect 'items fetched for nothing' "$(status_field prefetch_wasted)" 0
	hits=$(($(status_field hit_bytes) + $(loaded direct_hits) * size -
		$(status_field admitted_unread_bytes)))
	[ "$(drops)" -ne "$dropped" ] ||
		expect 'bytes of the origin and carried' \
			$(($(status_field origin_bytes) -
			$(status_field reread_bytes) +
			$(status_field prefetch_carried_bytes))) \
			$((epochs * files * size - hits))
	stop_mount
done

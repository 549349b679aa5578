#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures what a cold file costs. Every file is read once through a mount with
# an empty cache, and through bench/passthrough, which does the least that a
# caching file system must do. Source and cache are in memory, so that only the
# cost of the mount counts. Measures the processor time of the daemon for a
# file, and the files that are read in a second, with one reader and with eight.
#
#   ROUNDS=5 FILES=3000 bench/passthrough.sh
#
# Prints a table of medians, and writes bench-passthrough.json.
set -u
name=passthrough
bench=$(cd "$(dirname "$0")" && pwd)
TMPDIR=${TMPDIR:-/dev/shm}
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

rounds=${ROUNDS:-5} files=${FILES:-3000} file_bytes=112640
pass=$PWD/bench/passthrough
daemon=
tick_us=$((1000000 / $(getconf CLK_TCK)))

[ -x "$pass" ] || bench_fail "run me by 'make bench' in the build folder"
[ -c /dev/fuse ] || bench_skip "there is no /dev/fuse"

# Processor time of the daemon so far, of user and system, in us.
used_us() {
	sed 's/.*) //' "/proc/$daemon/stat" |
		awk -v t=$tick_us '{ printf("%d\n", ($12 + $13) * t) }'
}

# run WHAT READERS COMMAND ...: start the daemon, read all files, and add a line
# to $work/WHAT.READERS: us of the daemon for a file, and files a second.
run() {
	what=$1 readers=$2
	shift 2
	"$@" >"$work/log" 2>&1 &
	daemon=$!
	i=0
	until mountpoint -q "$mnt"; do
		i=$((i + 1))
		[ $i -lt 500 ] || bench_fail "no mount: $(cat "$work/log")"
		sleep 0.02
	done
	find "$mnt" -type f -printf '%P\n' >"$work/list"
	before=$(used_us)
	"$reader" "$mnt" --files-from "$work/list" --threads "$readers" --json \
		>"$work/epoch" || bench_fail "reading failed"
	after=$(used_us)
	rate=$(number files_per_s <"$work/epoch")
	awk -v a="$before" -v b="$after" -v n="$(wc -l <"$work/list")" \
		-v rate="$rate" 'BEGIN { print (b - a) / n, rate }' \
		>>"$work/$what.$readers"
	umount "$mnt" || fusermount3 -u "$mnt" || bench_fail "cannot unmount"
	wait "$daemon"
	rm -rf "$work/tier"
	mkdir "$work/tier"
}

column() {
	awk -v c="$2" '{ print $c }' "$work/$1" | median
}

echo "passthrough: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
files_of $file_bytes "$files" "$work/data"
mkdir -p "$mnt" "$work/tier"
round=1
while [ $round -le "$rounds" ]; do
	for n in 1 8; do
		run passthrough $n "$pass" "$work/data" "$mnt" "$work/tier"
		run directory $n "$refrain" mount "$work/data" "$mnt" \
			--cache "$work/tier:1G" --foreground
		run synthetic $n "$refrain" mount \
			"synthetic:files=$files,size=$file_bytes" "$mnt" \
			--cache "$work/tier:1G" --foreground
	done
	round=$((round + 1))
done

echo "source       readers   us a file   ratio   files/s   ratio"
comma=''
for n in 1 8; do
	for what in passthrough directory synthetic; do
		us=$(column $what.$n 1) rate=$(column $what.$n 2)
		us_ratio=$(ratio "$us" "$(column passthrough.$n 1)")
		rate_ratio=$(ratio "$rate" "$(column passthrough.$n 2)")
		printf '%-12s %7d   %9.1f   %5s   %7.0f   %5s\n' $what $n \
			"$us" "$us_ratio" "$rate" "$rate_ratio"
		printf '%s{"source": "%s", "readers": %d, "us": %s, ' \
			"$comma" $what $n "$us" >>"$work/json"
		printf '"us_ratio": %s, "files_per_s": %s, "rate_ratio": %s}' \
			"$us_ratio" "$rate" "$rate_ratio" >>"$work/json"
		comma=', '
	done
done
echo "bars: us 1.35 with one reader, 1.2 with eight; files/s 0.8 with one"
cat >"$json_out" <<END
{"bench": "passthrough", "machine": "$(machine)", "rounds": $rounds,
 "files": $files, "rows": [$(cat "$work/json")]}
END

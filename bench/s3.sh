#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Cold reads of a bucket of the stand-in (tests/system/far) through a mount,
# beside a bare curl-multi reader (bench/far-bare) of the same server:
#
#   FILES=2000 SIZE=110000 READERS=8 RUNS=3 RATE=200000000 bench/s3.sh
#
#   link     the server sends RATE bytes a second in all: files a second
#   cpu      no limit: processor time a file, of the mount and its readers,
#            beside bare and the same mount over `synthetic:`
#   late     20 ms to the first byte, and a plan: seconds beside bare with 256
#            GETs at a time
#   busy     a tenth of all answers are 503: seconds and requests beside none
#
# Alternating pairs, median of RUNS. Writes bench-s3.json.
set -u
name=s3
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"
# shellcheck source=bench/far.sh
. "$bench/far.sh"
bare=$PWD/bench/far-bare
[ -x "$bare" ] || bench_skip 'needs bench/far-bare'
slow_root || bench_skip 'needs root, to drop caches'

files=${FILES:-2000} size=${SIZE:-110000} readers=${READERS:-8}
runs=${RUNS:-3} rate=${RATE:-200000000}
seq -f 'f%07.0f.bin' 0 $((files - 1)) >"$work/names"

# bare_once DEPTH: "seconds cpu requests".
bare_once() {
	far_set verify=0
	"$bare" "$far/many/" "$1" <"$work/names" >"$work/bare" ||
		bench_fail "bare: $(cat "$work/bare")"
	far_set verify=1
	echo "$(number s <"$work/bare") $(number cpu_s <"$work/bare") $files"
}

# mount_once SOURCE WITH-PLAN: "seconds cpu requests".
mount_once() {
	rm -rf "$work/tier"
	far_mount "$1"
	far_scan_through
	find "$mnt" -type f -printf '%P\n' | sort >"$work/here"
	curl -sf "$far/-/zero" >/dev/null
	if [ "$2" = plan ]; then
		cut -d ' ' -f 3 "$work/order" | "$refrain" plan "$mnt" \
			>"$work/planned" 2>&1 &
		plan_pid=$!
		tries=50 # its first part is there before the first read
		until "$refrain" status "$mnt" --json |
			grep -q '"plans": *[1-9]' || [ $tries -eq 0 ]; do
			tries=$((tries - 1))
			sleep 0.02
		done
	fi
	before=$(cpu_s "$daemon")
	rm -f "$work/order.new"
	"$reader" "$mnt" --files-from "$work/here" --threads "$readers" \
		--order "$work/order.new" --json >"$work/read" 2>&1 ||
		bench_fail "reader: $(cat "$work/read")"
	awk -v s="$(number seconds <"$work/read")" -v a="$before" \
		-v b="$(cpu_s "$daemon")" -v r="$(far_count gets)" \
		'BEGIN { print s, b - a, r }'
	mv "$work/order.new" "$work/order"
	[ "$2" = no ] || wait "$plan_pid" 2>/dev/null
	far_umount
}

# pairs NAME DEPTH WITH-PLAN: medians into $1_bare and $1_mount files.
pairs() {
	: >"$work/$1.bare"
	: >"$work/$1.mount"
	i=0
	while [ $i -lt "$runs" ]; do
		i=$((i + 1))
		bare_once "$2" >>"$work/$1.bare"
		mount_once s3://many "$3" >>"$work/$1.mount" || exit 1
	done
}

# mid NAME.WHO FIELD
mid() {
	cut -d ' ' -f "$2" "$work/$1" | median
}

# row NAME WHAT BARE MOUNT RATIO
row() {
	printf '%-6s %-30s %10s %10s %8s\n' "$@"
	rows=$rows${rows:+, }$(printf '{"name": "%s", "bare": %s, ' "$1" "$3")
	rows=$rows$(printf '"mount": %s, "ratio": %s}' "$4" "$5")
}

us_a_file() {
	awk -v s="$1" -v n="$files" 'BEGIN { printf("%.0f\n", s * 1e6 / n) }'
}

rows=
far_start "files=$files" "size=$size" verify=1
echo "s3: $files files of $size bytes, $readers readers, $(machine)"
printf '%-6s %-30s %10s %10s %8s\n' name what bare mount ratio
far_set "rate=$rate"
pairs link "$readers" no
row link 's; ratio: bare / mount' "$(mid link.bare 1)" "$(mid link.mount 1)" \
	"$(ratio "$(mid link.bare 1)" "$(mid link.mount 1)")"
far_set rate=0
pairs cpu "$readers" no
: >"$work/local"
i=0
while [ $i -lt "$runs" ]; do
	i=$((i + 1))
	mount_once "synthetic:files=$files,size=$size" no >>"$work/local"
done
local_us=$(us_a_file "$(mid local 2)")
bare_us=$(us_a_file "$(mid cpu.bare 2)")
mount_us=$(us_a_file "$(mid cpu.mount 2)")
row cpu "us a file; synthetic $local_us" "$bare_us" "$mount_us" \
	"$(ratio "$mount_us" $((bare_us + local_us)))"
far_set delay_ms=20
pairs late 256 plan
row late 's; ratio: bare / mount' "$(mid late.bare 1)" "$(mid late.mount 1)" \
	"$(ratio "$(mid late.bare 1)" "$(mid late.mount 1)")"
pairs clean 8 plan
far_set busy=0.1
: >"$work/busy"
i=0
while [ $i -lt "$runs" ]; do
	i=$((i + 1))
	mount_once s3://many plan >>"$work/busy"
done
row busy 's clean, s busy; clean / busy' "$(mid clean.mount 1)" \
	"$(mid busy 1)" "$(ratio "$(mid clean.mount 1)" "$(mid busy 1)")"
row busy 'requests clean, busy' "$(mid clean.mount 3)" "$(mid busy 3)" \
	"$(ratio "$(mid busy 3)" "$(mid clean.mount 3)")"
far_stop
printf '{"files": %s, "size": %s, "runs": %s, "rows": [%s]}\n' \
	"$files" "$size" "$runs" "$rows" >"$json_out"

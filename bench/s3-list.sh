#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Listing a bucket of 1.3 million keys of the stand-in (tests/system/far), each
# page after 50 ms: flat, in 1,000 directories, and one file a directory.
#
#   FILES=1300000 PAGE_MS=50 RUNS=3 bench/s3-list.sh
#
# For each: seconds from the start of `refrain mount` to a complete scan, the
# processor time of the daemon and of the stand-in (more reliable than seconds
# on a busy machine), requested pages compared with ceil(n / 1000), and memory
# of the daemon for a file, without that of an empty mount. Median of RUNS.
# Writes bench-s3-list.json.
set -u
name=s3-list
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"
# shellcheck source=bench/far.sh
. "$bench/far.sh"

files=${FILES:-1300000} page_ms=${PAGE_MS:-50} runs=${RUNS:-3}
rows=
least=$(((files + 999) / 1000))

# list_once DIRS: print "seconds daemon-cpu stand-in-cpu pages bytes-a-file".
list_once() {
	far_start "files=$files" "dirs=$1" "list_ms=$page_ms"
	rm -rf "$work/tier"
	begin=$(now)
	far_mount s3://many
	far_scan_through
	end=$(now)
	awk -v a="$begin" -v b="$end" -v d="$(cpu_s "$daemon")" \
		-v f="$(cpu_s "$far_pid")" -v l="$(far_count lists)" \
		-v r="$(rss_bytes "$daemon")" -v e="$empty" -v n="$files" \
		'BEGIN { print b - a, d, f, l, (r - e) / n }'
	far_umount
	far_stop
}

far_start files=1
far_mount s3://many
far_scan_through
empty=$(rss_bytes "$daemon")
far_umount
far_stop

echo "s3-list: $files keys, a page after $page_ms ms, $(machine)"
printf '%-16s %8s %8s %8s %8s %8s %8s\n' keys s 'cpu s' 'far cpu' pages \
	'x least' 'B/file'
for dirs in 0 1000 "$files"; do
	: >"$work/runs"
	i=0
	while [ $i -lt "$runs" ]; do
		i=$((i + 1))
		list_once "$dirs" >>"$work/runs" || exit 1
	done
	# shellcheck disable=SC2046 # five words
	set -- $(for k in 1 2 3 4 5; do
		cut -d ' ' -f $k "$work/runs" | median
	done)
	printf '%-16s %8.2f %8.2f %8.2f %8d %8.3f %8.0f\n' "$dirs dirs" \
		"$1" "$2" "$3" "$4" "$(ratio "$4" "$least")" "$5"
	rows=$rows${rows:+, }$(printf '{"dirs": %s, "s": %s, "cpu_s": %s, ' \
		"$dirs" "$1" "$2")
	rows=$rows$(printf '"pages": %s, "bytes_a_file": %s}' "$4" "$5")
done
printf '{"files": %s, "page_ms": %s, "runs": %s, "rows": [%s]}\n' \
	"$files" "$page_ms" "$runs" "$rows" >"$json_out"

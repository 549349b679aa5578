#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Hot reads: compares files in the page cache of the mount with the same files
# in the page cache of their own file system. One thread; 110 KB files by
# open+read+close, and one file of 1 GB from end to end. Seven alternating
# pairs. Each measurement follows directly on its warm-up, because some kernels
# reclaim pages that were not used for a minute.
#
# Prints a table and the medians, and writes bench-hot.json.
set -u
name=hot
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

pairs=7
file_bytes=112640 files=2000
big_bytes=1073741824

# hot_rate DIR KEY: print the median of four epochs after a warm-up.
hot_rate() {
	"$reader" "$1" --epochs 5 --json >"$work/epochs" ||
		bench_fail "reading $1 failed"
	tail -n 4 "$work/epochs" | while read -r line; do
		echo "$line" | number "$2"
	done | median
}

# compare WHAT KEY: measure pairs of rates of $work/data/WHAT and $mnt/WHAT.
compare() {
	pair=1
	while [ $pair -le $pairs ]; do
		if [ $((pair % 2)) -eq 1 ]; then
			bare=$(hot_rate "$work/data/$1" "$2")
			ours=$(hot_rate "$mnt/$1" "$2")
		else
			ours=$(hot_rate "$mnt/$1" "$2")
			bare=$(hot_rate "$work/data/$1" "$2")
		fi
		r=$(ratio "$ours" "$bare")
		echo "$r" >>"$work/ratios.$1"
		printf '%-6s %4d  %12.1f  %12.1f  %6s\n' "$1" $pair "$bare" \
			"$ours" "$r"
		printf '%s{"what": "%s", "bare": %s, "mount": %s}' \
			"$comma" "$1" "$bare" "$ours" >>"$work/json"
		comma=', '
		pair=$((pair + 1))
	done
}

echo "hot: $(machine)"
mkdir "$mnt" "$work/data"
files_of $file_bytes $files "$work/data/files"
mkdir "$work/data/big"
head -c $big_bytes /dev/urandom >"$work/data/big/file"
"$refrain" mount "$work/data" "$mnt" --cache "$work/cache:2G" ||
	bench_fail "the mount failed"
"$refrain" warm "$mnt" >/dev/null || bench_fail "warming failed"

comma=''
echo "what   pair          bare         mount   ratio"
compare files files_per_s
compare big mb_per_s
small=$(median <"$work/ratios.files") large=$(median <"$work/ratios.big")
echo "median ratio: open+read+close of 110 KB files $small (bar 0.8)," \
	"sequential $large (bar 0.9)"
cat >"$json_out" <<END
{"bench": "hot", "machine": "$(machine)", "median_ratio_files": $small,
 "median_ratio_sequential": $large, "pairs": [$(cat "$work/json")]}
END

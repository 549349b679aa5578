# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# Shared by the benchmark scripts. Sourced after `name` was set; they run in
# the build folder, with the folder of the scripts in $bench.
#
# Makes $work, which is removed at the end, as is a mount at $mnt.

refrain=$PWD/refrain
reader=$PWD/bench/epoch-reader
json_out=$PWD/bench-$name.json
# shellcheck source=bench/slow-disk.sh
. "$bench/slow-disk.sh"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/refrain-bench.XXXXXX") || exit 1
mnt=$work/mnt

bench_cleanup() {
	mountpoint -q "$mnt" && {
		"$refrain" umount "$mnt" 2>/dev/null || fusermount3 -uz "$mnt"
	}
	slow_disk_remove
	rm -rf "$work"
}
trap bench_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Report why this is not measured, so that the next benchmark can run.
bench_skip() {
	echo "$name: not measured: $*"
	exit 77
}

bench_fail() {
	echo "$name: $*" >&2
	exit 1
}

# number KEY: print the number at KEY of the one-line JSON object on standard
# input.
number() {
	sed 's/[{,]/\n/g' |
		sed -n "s/^ *\"$1\" *: *\\([0-9.]*\\).*/\\1/p" | head -n 1
}

# files_of BYTES COUNT DIR: make files of random bytes, a hundred a directory.
files_of() {
	mkdir -p "$3"
	head -c $(($1 * $2)) /dev/urandom |
		(cd "$3" && split -a 6 -b "$1" - f)
	for f in "$3"/f*; do
		d=${f%??}
		d=$3/d${d##*/f}
		mkdir -p "$d" && mv "$f" "$d"
	done
}

forget() {
	sync
	slow_root && slow_put 3 /proc/sys/vm/drop_caches
}

median() {
	sort -n | awk '{ v[NR] = $1 } END {
		h = int((NR + 1) / 2)
		print NR % 2 ? v[h] : (v[h] + v[h + 1]) / 2
	}'
}

ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf("%.3f\n", a / b) }'
}

machine() {
	echo "$(nproc) processors, Linux $(uname -r)," \
		"$(df --output=fstype "$work" | tail -n 1)"
}

if [ ! -x "$refrain" ] || [ ! -x "$reader" ]; then
	bench_fail "run me by 'make bench' in the build folder"
fi

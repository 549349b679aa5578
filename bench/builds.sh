#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares the speed of this build with that of another one, in alternating
# pairs.
#
#   bench/builds.sh OTHER-BUILD [ROW ...]    # PAIRS=21 ROUNDS=4
#
# Rows: hot, an epoch from the kernel's pages of the mount; cold, a first epoch,
# with nothing cached; tier, an epoch from the tier after a new mount; loader,
# `refrain load` on the directory; direct, `refrain load` on a mount with
# everything cached. Only if they are named: s3, a first epoch of a bucket;
# peers, an epoch from a memcached that has everything; share, two jobs that
# share. The two numbers of a pair are means of the middle half of ROUNDS runs
# each, of three times as many for the rows cold and s3, whose runs are the
# shortest. The builds take turns, and each begins every second round, so that a
# change of the machine's speed affects both. Source and tier are in memory, so
# that no disk is measured. Prints for each row the median of new / other, and
# the 95 % interval of the median, which is that between two ranks. The bar is
# 0.97 for its lower end. Writes bench-builds.json. Needs FUSE.
set -u
name=builds
bench=$(cd "$(dirname "$0")" && pwd)
TMPDIR=${TMPDIR:-/dev/shm}
export TMPDIR
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"
[ -w /dev/fuse ] || bench_skip 'cannot open /dev/fuse'

pairs=${PAIRS:-21}
rounds=${ROUNDS:-4}
other=${1:?usage: builds.sh OTHER-BUILD [ROW ...]}/refrain
[ -x "$other" ] || bench_fail "$other is not a program"
shift
rows=${*:-hot cold tier loader direct}
XDG_CACHE_HOME=$work/index
export XDG_CACHE_HOME
mkdir "$mnt"
case " $rows " in
*' s3 '*)
	# shellcheck source=bench/far.sh
	. "$bench/far.sh"
	;;
esac
case " $rows " in
*' peers '*)
	command -v memcached >/dev/null || bench_skip 'needs memcached'
	memcached_user=
	[ "$(id -u)" -ne 0 ] || memcached_user='-u root'
	;;
esac
builds_cleanup() {
	for p in ${far_pid:-} ${servers:-}; do
		kill "$p" 2>/dev/null
	done
	bench_cleanup
}
trap builds_cleanup EXIT
files_of 112640 2000 "$work/files"
"$refrain" make-dataset --classes 4 --images 400 --size 500x375 \
	"$work/jpegs" >/dev/null ||
	bench_fail 'no dataset'

# mounted COMMAND DIR: mount DIR, with the existing cache.
mounted() {
	"$1" mount "$2" "$mnt" --cache "$work/tier.$(basename "$2"):1G" \
		2>/dev/null || bench_fail "$1 mount failed"
}

# Read an epoch of the mount; $1 is the number of threads.
epoch_rate() {
	"$reader" "$mnt" --threads "$1" --json | number files_per_s
}

load_rate() {
	load_command=$1
	load_data=$2
	shift 2
	"$load_command" load "$load_data" --batch 64 --size 224 --epochs 3 \
		--threads 2 --json "$@" 2>/dev/null | number images_per_s
}

# filled COMMAND DIR: mount DIR, with everything cached.
filled() {
	mounted "$@"
	"$1" warm "$mnt" >/dev/null || bench_fail 'warming failed'
}

row_hot() {
	filled "$1" "$work/files"
	epoch_rate 1 >/dev/null
	"$reader" "$mnt" --epochs 3 --json | while read -r epoch; do
		echo "$epoch" | number files_per_s
	done | median
	"$1" umount "$mnt"
}

row_cold() {
	rm -rf "$work/tier.files"
	mounted "$1" "$work/files"
	epoch_rate 8
	"$1" umount "$mnt"
}

row_tier() {
	filled "$1" "$work/files"
	"$1" umount "$mnt"
	mounted "$1" "$work/files"
	epoch_rate 8
	"$1" umount "$mnt"
}

row_loader() {
	load_rate "$1" "$work/jpegs"
}

row_direct() {
	filled "$1" "$work/jpegs"
	load_rate "$1" "$mnt"
	"$1" umount "$mnt"
}

row_s3() {
	[ -n "${far:-}" ] || far_start files=2000 size=110000 verify=1
	rm -rf "$work/tier.far"
	"$1" mount s3://many "$mnt" --cache "$work/tier.far:1G" \
		--endpoint-url "$far" 2>/dev/null ||
		bench_fail "$1 mount of s3 failed"
	epoch_rate 8
	"$1" umount "$mnt"
}

# peer_of COMMAND: sets $peer, the address of a memcached of its own, and
# $filling if that was just started.
peer_of() {
	filling=
	peer=$work/peer.$(echo "$1" | cksum | cut -d ' ' -f 1)
	if [ ! -s "$peer" ]; then
		filling=yes
		nth=$(echo "${servers:-}" | wc -w)
		port=$((20000 + $$ % 10000 * 2 + nth))
		# shellcheck disable=SC2086 # two words or none
		memcached -M -m 1024 -I 8m -U 0 -l 127.0.0.1 -p "$port" \
			$memcached_user &
		servers="${servers:-} $!"
		echo "127.0.0.1:$port" >"$peer"
	fi
	peer=$(cat "$peer")
}

with_peer() {
	rm -rf "$work/tier.peer"
	"$1" mount "$work/files" "$mnt" --cache "$work/tier.peer:4M" \
		--peers "$peer" 2>/dev/null ||
		bench_fail "$1 mount with peers failed"
}

row_peers() {
	peer_of "$1"
	if [ -n "$filling" ]; then
		with_peer "$1"
		epoch_rate 8 >/dev/null
		"$1" umount "$mnt"
	fi
	with_peer "$1"
	epoch_rate 8
	"$1" umount "$mnt"
}

row_share() {
	jobs=
	for job in 1 2; do
		load_rate "$1" "$work/jpegs" --share builds --share-jobs 2 \
			>"$work/share.$job" &
		jobs="$jobs $!"
	done
	# shellcheck disable=SC2086 # a list of processes
	wait $jobs
	cat "$work/share.1"
}

# The mean of the middle half: less noisy than the median, and without runs that
# other programs disturbed.
middle() {
	sort -n | awk '{ v[NR] = $1 } END {
		q = int(NR / 4)
		for (i = q + 1; i <= NR - q; i++)
			sum += v[i]
		print sum / (NR - 2 * q)
	}'
}

# one_pair ROW PAIR: the ratio of this build's number to the other's.
one_pair() {
	: >"$work/ours"
	: >"$work/theirs"
	round=$2
	last=$(($2 + rounds))
	case $1 in
	cold | s3) last=$(($2 + 3 * rounds)) ;;
	esac
	while [ "$round" -lt $last ]; do
		if [ $((round % 2)) -eq 0 ]; then
			"row_$1" "$refrain" >>"$work/ours"
			"row_$1" "$other" >>"$work/theirs"
		else
			"row_$1" "$other" >>"$work/theirs"
			"row_$1" "$refrain" >>"$work/ours"
		fi
		round=$((round + 1))
	done
	ratio "$(middle <"$work/ours")" "$(middle <"$work/theirs")"
}

# interval RATIOS: the median and the ends of its 95 % interval.
interval() {
	sort -n "$1" | awk '{ v[NR] = $1 } END {
		p = c = 0.5 ^ NR
		for (; c + p * (NR - k) / (k + 1) <= 0.025; k++) {
			p *= (NR - k) / (k + 1)
			c += p
		}
		printf("%.3f %.3f %.3f\n", v[int((NR + 1) / 2)], v[k + 1],
			v[NR - k]) }'
}

echo "builds: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
echo "row      pairs   median   95 % interval"
verdict=PASS comma=
for row in $rows; do
	pair=0
	: >"$work/ratios"
	while [ $pair -lt "$pairs" ]; do
		one_pair "$row" "$pair" >>"$work/ratios"
		pair=$((pair + 1))
	done
	# shellcheck disable=SC2046 # three numbers
	set -- $(interval "$work/ratios")
	printf '%-8s %5d   %6s   %s to %s\n' "$row" "$pairs" "$@"
	awk "BEGIN { exit !($2 < 0.97) }" && verdict="FAIL"
	printf '%s{"row": "%s", "median": %s, "low": %s, "high": %s}' \
		"$comma" "$row" "$@" >>"$work/json"
	comma=', '
done
echo "$verdict: load $(cut -d ' ' -f 1 /proc/loadavg)"
cat >"$json_out" <<END
{"bench": "builds", "machine": "$(machine)", "pairs": $pairs,
 "rows": [$(cat "$work/json")]}
END
[ "$verdict" = PASS ]

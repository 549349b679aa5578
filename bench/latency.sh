#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A far origin: a cold epoch of small files from a directory whose opens and
# reads take 5 ms each, any number at a time. Compares a bare reader at its best
# number of threads with the mount with an empty cache and as many threads. The
# table has the idle time of the processors, too: if it is near 0, they are the
# limit, and the origin's stand-in and the reader use a part of them. With SLOTS
# the origin serves only so many requests at a time. At the end it prints the
# requests of the last epoch of both.
#
#   MS=5 FILES=1000 THREADS='8 64' SLOTS=32 bench/latency.sh
#
# Needs root (kernel caches are dropped), FUSE. Prints a table and the ratio of
# the best of each, and writes bench-latency.json.
set -u
name=latency
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

ms=${MS:-5} files=${FILES:-1000} file_bytes=112640 rounds=3
slow_fs=$PWD/bench/slow-fs

[ -w /dev/fuse ] || bench_skip "cannot open /dev/fuse"
slow_root || bench_skip "$slow_why"

far=$work/far
far_pid=
latency_cleanup() {
	"$refrain" umount "$mnt" 2>/dev/null
	[ -z "$far_pid" ] || {
		fusermount3 -uz "$far" || umount -l "$far"
		# The process does not end by itself if another mount namespace
		# has a copy of the mount.
		kill "$far_pid"
		wait "$far_pid"
	} 2>/dev/null
	bench_cleanup
}
trap latency_cleanup EXIT

# rate DIR THREADS: print files a second.
rate() {
	"$reader" "$1" --threads "$2" --json >"$work/epoch" ||
		bench_fail "reading failed"
	number files_per_s <"$work/epoch"
}

# Print the total and the idle time of the processors, in ticks.
ticks() {
	awk '/^cpu / { for (i = 2; i < 10; i++) n += $i; print n, $5 + $6 }' \
		/proc/stat
}

# idle TICKS TICKS: print the idle share of the time between, in per cent.
idle() {
	echo "$1 $2" | awk '{ printf("%.0f\n", 100 * ($4 - $2) / ($3 - $1)) }'
}

# Print the requests to the origin since the last call.
requests() {
	sed 's/"[a-z]*_at_once": [0-9]*,* *//g; s/, *$//' "$far/.requests"
}

bare_rate() {
	forget
	requests >/dev/null
	rate "$far" "$1"
	requests >"$work/requests.bare"
}

# Caches are deleted at the end: after many deletions, ext4 takes long to find a
# free inode.
caches=0
mount_rate() {
	caches=$((caches + 1))
	"$refrain" mount "$far" "$mnt" --cache "$work/cache.$caches:1G" ||
		bench_fail "the mount failed"
	until "$refrain" status "$mnt" --json | grep -q '"scan":"complete"'; do
		sleep 0.1
	done
	forget
	requests >/dev/null
	before=$(ticks)
	rate "$mnt" "$1"
	requests >"$work/requests.mount"
	idle "$before" "$(ticks)" >>"$work/idle.$1"
	"$refrain" umount "$mnt" || bench_fail "the mount did not go away"
}

best() {
	sort -n "$work/$1.$2" | tail -n 1
}

echo "latency: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
mkdir "$mnt" "$far"
files_of $file_bytes "$files" "$work/data"
"$slow_fs" ${SLOTS:+-s "$SLOTS"} "$work/data" "$far" "$ms" &
far_pid=$!
until mountpoint -q "$far"; do
	kill -0 $far_pid || bench_fail "the far origin did not start"
	sleep 0.1
done

echo "threads  bare files/s  mount files/s   ratio  idle %"
for threads in ${THREADS:-1 2 4 8 16 32 64}; do
	round=1
	while [ $round -le $rounds ]; do
		bare_rate "$threads" >>"$work/bare.$threads"
		mount_rate "$threads" >>"$work/mount.$threads"
		round=$((round + 1))
	done
	bare=$(best bare "$threads") ours=$(best mount "$threads")
	r=$(ratio "$ours" "$bare")
	printf '%7d  %12.1f  %13.1f  %6s  %6s\n' "$threads" "$bare" "$ours" \
		"$r" "$(median <"$work/idle.$threads")"
	echo "$bare" >>"$work/bare.best"
	echo "$ours" >>"$work/mount.best"
	printf '%s{"threads": %d, "bare": %s, "mount": %s}' \
		"${comma-}" "$threads" "$bare" "$ours" >>"$work/json"
	comma=', '
done
all=$(ratio "$(sort -n "$work/mount.best" | tail -n 1)" \
	"$(sort -n "$work/bare.best" | tail -n 1)")
echo "best of each: ratio $all (bar 0.95)"
echo "requests for $files files, bare:  $(cat "$work/requests.bare")"
echo "requests for $files files, mount: $(cat "$work/requests.mount")"
cat >"$json_out" <<END
{"bench": "latency", "machine": "$(machine)", "ms": $ms, "slots": ${SLOTS:-0},
 "ratio": $all, "threads": [$(cat "$work/json")]}
END

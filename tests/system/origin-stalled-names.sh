#!/bin/sh
# SPDX-License-Identifier: MIT
#
# While look-ups and listings hang at the origin, cached files are served as
# fast as without them (M26). When the origin continues, they get the right
# answers.
set -eu
name=origin-stalled-names
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount
# shellcheck source=tests/system/origin-stalled-lib.sh
. "$(dirname "$0")/origin-stalled-lib.sh"

for d in far/near far/away; do
	files $d 30 100
done
start_mount "$src" "$mnt" --cache "$work/cache:100M" \
	--fault stall=1,meta=1,match=far/
"$refrain" warm "$mnt" hit >/dev/null
ls "$mnt/far" >/dev/null
pids=
for f in "$src"/far/near/*; do
	stat -c %s "$mnt/far/near/${f##*/}" >"$work/stat.${f##*/}" 2>&1 &
	pids="$pids $!"
done
for i in 1 2 3 4; do
	ls "$mnt/far/away" >"$work/ls.$i" 2>&1 &
	pids="$pids $!"
done

# all_asleep: do all of them sleep in the kernel? Then the daemon has their
# requests.
all_asleep() {
	for pid in $pids; do
		read -r _ comm state _ 2>/dev/null <"/proc/$pid/stat" ||
			return 1
		case $comm:$state in
		*stat*:[SD] | *ls*:[SD]) ;;
		*) return 1 ;;
		esac
	done
}
wait_for 10 all_asleep || fail 'look-ups do not hang'
for _ in $(seq $rounds); do
	p99 >>"$work/beside"
done
all_asleep || fail 'look-ups did not hang until the end'
"$refrain" fault "$mnt" ''
for pid in $pids; do
	wait "$pid" ||
		fail "after the stall: $(cat "$work"/stat.* "$work"/ls.*)"
done
for _ in $(seq $rounds); do
	p99 >>"$work/free"
done
compare 'look-ups that hang'
[ "$(cat "$work"/stat.* | sort -u)" = 100 ] || fail 'wrong attributes'
for i in 1 2 3 4; do
	[ "$(wc -l <"$work/ls.$i")" -eq 30 ] || fail 'a wrong listing'
done
stop_mount

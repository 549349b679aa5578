#!/bin/sh
# SPDX-License-Identifier: MIT
#
# No handler waits for an origin (M26). While 64 reads hang there, and while
# look-ups and listings do, what is cached is served as fast as without them,
# names that are known are shown, and a miss elsewhere gets through; when the
# origin goes on, everybody gets the right bytes. STALLED_FLOOR_US: p99 of hits
# up to this passes; 0, on a machine that does nothing else, leaves the factor
# of 2. STALLED_S: how long the reads hang in the first round, at least.
set -eu
name=stalled-origin
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount

held=64
rounds=4
# The hundredth part of 1000 reads is at the mercy of whatever else runs here,
# which makes it longer, never shorter: the best round of each kind counts. A
# hit that had waited for the origin would take seconds in every round.
floor_us=${STALLED_FLOOR_US:-$((250000 * patience))}

# files DIR COUNT BYTES
files() {
	mkdir -p "$src/$1"
	head -c $(($2 * $3)) /dev/urandom |
		(cd "$src/$1" && split -a 3 -b "$3" - f)
}

# p99: of hits, their bytes dropped from the kernel; microseconds.
p99() {
	"$helpers/hit_times" "$mnt" 1000 <"$work/hits" >"$work/times" ||
		fail 'hits fail'
	cut -d' ' -f2 "$work/times"
}

best() {
	sort -n "$1" | head -n 1
}

# compare WHAT: the best of the two lists of p99.
compare() {
	free_us=$(best "$work/free")
	beside_us=$(best "$work/beside")
	note "p99 of hits beside $1: $beside_us us, without: $free_us us;" \
		"all: $(tr '\n' ' ' <"$work/beside")and $(tr '\n' ' ' \
			<"$work/free")"
	[ "$beside_us" -le $((2 * free_us)) ] ||
		[ "$beside_us" -le "$floor_us" ] ||
		fail "hits wait for $1: $beside_us us, not $free_us us"
	rm "$work/free" "$work/beside"
}

inflight_at_least() {
	n=$(status_field inflight)
	[ "${n:-0}" -ge "$1" ]
}

files hit 200 110000
for r in $(seq $rounds); do
	files "hang/$r" $held 4096
	(cd "$src" && find "hang/$r" -type f) >"$work/hang.$r"
	"$reader" "$src" --files-from "$work/hang.$r" \
		--make-sums "$work/sums.$r" >/dev/null
done
files other 1 300000
(cd "$src" && find hit -type f) >"$work/hits"
names=$(find "$src" -type f | wc -l)

# -- Reads -------------------------------------------------------------------

start_mount "$src" "$mnt" --cache "$work/cache:100M" --fault ''
scan_through
"$refrain" warm "$mnt" hit >/dev/null
before=$(status_field hits)

# Calls that need only names that are known.
names_answered() {
	drop_caches
	timeout $((30 * patience)) ls -lR "$mnt" >"$work/listed" ||
		fail 'listings wait'
	[ "$(grep -c '^-' "$work/listed")" -eq "$names" ] ||
		fail 'names are missing'
	[ ! -e "$mnt/hit/nothing" ] || fail 'a name that is not there'
}

for r in $(seq $rounds); do
	p99 >>"$work/free"
	"$refrain" fault "$mnt" stall=1,match=hang/
	"$reader" "$mnt" --threads $held --files-from "$work/hang.$r" \
		--sums "$work/sums.$r" >"$work/readers" 2>&1 &
	readers=$!
	wait_for 10 inflight_at_least $held || fail "not $held reads hang"
	begin_s=$(date +%s)
	p99 >>"$work/beside"
	while [ "$r" -eq 1 ] &&
		[ $(($(date +%s) - begin_s)) -lt "${STALLED_S:-0}" ]; do
		p99 >>"$work/beside"
	done
	if [ "$r" -eq 1 ]; then
		names_answered
		timeout $((30 * patience)) \
			cmp "$mnt/other/faaa" "$src/other/faaa" ||
			fail 'a miss elsewhere does not get through'
	fi
	[ "$(status_field inflight)" -ge $held ] ||
		fail 'the reads did not hang until the end'
	"$refrain" fault "$mnt" ''
	wait $readers || fail "after the stall: $(cat "$work/readers")"
done
compare "$held reads that hang"
# They were hits, and it was the daemon that answered them.
hits=$(($(status_field hits) - before))
[ $hits -ge $((rounds * 1900)) ] || fail "only $hits hits"
expect 'bytes from the origin' "$(status_field origin_bytes)" \
	$((200 * 110000 + rounds * held * 4096 + 300000))
stop_mount

# -- Look-ups and listings ---------------------------------------------------

# A source of which no manifest is kept.
mv "$src" "$work/src.2"
src=$work/src.2
for d in far/near far/away; do
	files $d 30 100
done
start_mount "$src" "$mnt" --cache "$work/cache.2:100M" \
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

# All of them sleep in the kernel, so their requests are at the daemon.
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
for r in $(seq $rounds); do
	p99 >>"$work/beside"
done
all_asleep || fail 'look-ups did not hang until the end'
"$refrain" fault "$mnt" ''
for pid in $pids; do
	wait "$pid" ||
		fail "after the stall: $(cat "$work"/stat.* "$work"/ls.*)"
done
for r in $(seq $rounds); do
	p99 >>"$work/free"
done
compare 'look-ups that hang'
[ "$(cat "$work"/stat.* | sort -u)" = 100 ] || fail 'wrong attributes'
for i in 1 2 3 4; do
	[ "$(wc -l <"$work/ls.$i")" -eq 30 ] || fail 'a wrong listing'
done
stop_mount

# -- Revalidation --------------------------------------------------------------

# Names that are due for a question wait for it once and not for long: not as
# long as a request may take, and not each of them.
start_mount "$src" "$mnt" --cache "$work/cache.3:100M" --fault '' --revalidate 1
scan_through
hit=$(head -n 1 "$work/hits")
epoch() {
	timeout $((20 * patience)) "$reader" "$mnt" --files-from "$work/hits" \
		--json >"$work/epoch" || fail "$1: $(cat "$work/epoch")"
}
is_asked_again() {
	stat "$mnt/$hit" >"$work/stat"
	[ "$(status_field origin_stats)" -gt "$asked" ]
}
epoch before
asked=$(status_field origin_stats)
"$refrain" fault "$mnt" stall=1,meta=1
wait_for 20 is_asked_again || fail 'nobody asks'
begin_s=$(date +%s)
for round in 1 2 3; do
	epoch "round $round while it hangs"
done
took=$(($(date +%s) - begin_s))
note "while nothing answers: 600 hits in $took s"
[ $took -le $((8 * patience)) ] || fail "hits wait: $took s"
"$refrain" fault "$mnt" ''
echo other >"$work/new"
mv "$work/new" "$src/$hit"
wait_for 20 cmp -s "$src/$hit" "$mnt/$hit" || fail 'a change is not seen'
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Entries that were flipped, cut, extended, zeroed, swapped or deleted behind
# the daemon's back: readers get the right bytes, each is counted and fetched
# again, and `refrain verify` names the bad ones until then.
#
# REFRAIN_SEED says which, and where; DAMAGES how many of them while they are
# being read: a thousand in `make check-faults`.
set -eu
name=damage
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3

seed=${REFRAIN_SEED:-$(date +%N | sed 's/^0*//')}
seed=${seed:-1}
note "seed $seed; again with REFRAIN_SEED=$seed"

start() {
	start_mount "$src" "$mnt" --cache "$work/fast:20M" \
		--cache "$work/slow:200M" "$@"
}

# damage COUNT KINDS [SECONDS]: so many operations, so long after each other;
# sets $bad and $gone, and $hit, their sum.
damage() {
	seed=$((seed + 1))
	counts=$(python3 "$(dirname "$0")/cache_damage.py" $seed "$1" "$2" \
		"${3:-0}" \
		"$work/fast" "$work/slow") || fail 'cannot damage'
	bad=${counts% *}
	gone=${counts#* }
	hit=$((bad + gone))
	[ "$hit" -ge "$1" ] || fail "only $counts damaged"
}

# verified STATUS COUNT: what `refrain verify` finds, by the mount.
verified() {
	got=0
	"$refrain" verify "$mnt" >"$work/verify" 2>&1 || got=$?
	expect 'exit status of verify' "$got" "$1"
	expect 'damaged entries that verify lists' \
		"$(grep -c "^$work/.*: " "$work/verify")" "$2"
}

counted() {
	echo $(($(status_field checksum_errors) + $(status_field entries_lost)))
}

# Everything is in a tier again.
whole() {
	[ "$(status_field entries)" -eq "$items" ]
}

# read_and_count WHAT: an epoch, right bytes, and every damaged entry counted.
read_and_count() {
	drop_caches
	"$reader" "$mnt" --threads 8 --sums "$work/sums" >/dev/null ||
		fail "$1: wrong bytes"
	expect "$1: counted" $(($(counted) - before)) "$hit"
	wait_for 20 whole || fail "$1: not everything was admitted again"
	verified 0 0
	note "$1: $bad damaged and $gone deleted entries, all counted and" \
		'fetched again'
}

damages=${DAMAGES:-200}
make_tree "$src" 6 $((400 + damages)) 300000
"$reader" "$src" --make-sums "$work/sums" >/dev/null
items=$(find "$src" -type f -size +0 | wc -l)
all=flip,trailer,cut,extend,zero,empty,swap,delete

# Under the live mount, after their first use.
start
"$reader" "$mnt" --threads 8 --sums "$work/sums" >/dev/null
wait_for 20 whole || fail 'not everything was admitted'
verified 0 0
before=$(counted)
damage 150 $all
verified 1 "$bad"
read_and_count 'after their first use'

# Each kind alone.
for kind in flip trailer cut extend zero empty swap delete; do
	before=$(counted)
	damage 30 $kind
	read_and_count "$kind"
done
stop_mount

# Under the live mount, before their first use: of an earlier mount.
start
before=$(counted)
damage 150 $all
verified 1 "$bad"
read_and_count 'before their first use'

# While they are being read, epoch after epoch.
read_on() {
	while [ ! -e "$work/enough" ]; do
		"$reader" "$mnt" --drop --sums "$work/sums" "$@" || exit
	done
}
before=$(counted)
read_on --threads 4 >/dev/null 2>"$work/errors" &
readers=$!
read_on --threads 2 --io mmap >/dev/null 2>"$work/errors.mmap" &
mappers=$!
damage "$damages" $all 0.002
touch "$work/enough"
wait $readers || fail "while being read: $(cat "$work/errors")"
wait $mappers || fail "while being mapped: $(cat "$work/errors.mmap")"
seen=$(($(counted) - before))
note "of $hit damaged while being read $seen were met meanwhile"
read_and_count 'while being read'
stop_mount

# Before the mount is there; and where blocks are not hashed, what does not
# need that.
before=0
damage 100 cut,extend,empty,swap,delete
hit=$bad # what went before the mount is not missed
start --verify never
read_and_count 'with --verify never'
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Entries that were flipped, cut, extended, zeroed, swapped or deleted without
# the daemon's knowledge: readers get the right bytes, each such entry is
# counted and fetched again, and `refrain verify` names the damaged ones until
# then.
#
# REFRAIN_SEED selects the entries and the places in them. DAMAGES is the number
# of damages during reads: a thousand in `make check-faults`.
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

# damage COUNT KINDS [SECONDS]: do COUNT operations, one every SECONDS. Sets
# $bad and $gone, and $hit to their sum.
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

# verified STATUS COUNT: check the status of `refrain verify` of the mount, and
# the number of entries that it finds damaged.
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

# whole: check that everything is in a tier again.
whole() {
	[ "$(status_field entries)" -eq "$items" ]
}

# read_and_count WHAT: read an epoch; check its bytes, and that every damaged
# entry was counted.
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

# Damage entries under the live mount, after their first use.
start
"$reader" "$mnt" --threads 8 --sums "$work/sums" >/dev/null
wait_for 20 whole || fail 'not everything was admitted'
verified 0 0
before=$(counted)
damage 150 $all
verified 1 "$bad"
read_and_count 'after their first use'

# Do each kind of damage alone.
for kind in flip trailer cut extend zero empty swap delete; do
	before=$(counted)
	damage 30 $kind
	read_and_count "$kind"
done
stop_mount

# Damage entries of an earlier mount under the live mount, before their first
# use.
start
before=$(counted)
damage 150 $all
verified 1 "$bad"
read_and_count 'before their first use'

# Damage entries while they are read, epoch after epoch.
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

# Damage entries before the mount begins. Without hashes of blocks, do only
# damage that is found without them.
before=0
damage 100 cut,extend,empty,swap,delete
hit=$bad # the mount does not miss entries that were deleted before
start --verify never
read_and_count 'with --verify never'
stop_mount

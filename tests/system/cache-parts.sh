#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files that are larger than the memory are read in pieces smaller than their
# chunks. Each byte comes from the source once, even after kill -9 and remounts.
# A part that was damaged is fetched again.
#
# The files are shorter than what a reader must read in a row before a mount
# reads ahead: random pieces of a long one follow each other by chance, and then
# the source is asked for bytes that no piece has.
set -eu
name=parts
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3

here=$(cd "$(dirname "$0")" && pwd)
files=16 file=500000 staging=1048576
size=$((files * file))
chunks=$((files * ((file + 65535) / 65536)))
mkdir -p "$src"
names=$(seq -f shard%g $files)
for n in $names; do
	head -c $file /dev/urandom >"$src/$n"
done

start() {
	start_mount "$src" "$mnt" --cache "$work/tier:20M" --limit 64K \
		--chunk 64K --staging $staging
}

# read_pieces SEED BYTES STEP
read_pieces() {
	# shellcheck disable=SC2086 # one word a name
	python3 "$here/cache_parts.py" "$mnt" "$src" "$2" "$1" "$3" $names
}

# pieces SEED: read an epoch in pieces of 16 KiB. Sets $bytes to the bytes from
# the source.
pieces() {
	before=$(status_field origin_bytes)
	read_pieces "$1" 16384 1 || fail "wrong bytes in epoch $1"
	bytes=$(($(status_field origin_bytes) - before))
}

# fetched MOST: check that no more bytes than MOST were fetched, in addition to
# those that this mount and earlier ones have dropped. On a slow disk some are
# dropped.
fetched() {
	dropped=$((lost + $(status_field partial_dropped)))
	note "$bytes bytes from the source, $dropped dropped"
	[ "$bytes" -le $(($1 + dropped)) ] ||
		fail "$bytes bytes from the source, not $1 and $dropped"
}

# stop: end the mount, and add the bytes that it has dropped to $lost, including
# those at its end.
stop() {
	lost=$((lost + $(status_field partial_dropped)))
	stop_mount
	lost=$((lost + $(sed -n 's/.* \([0-9]*\) bytes* of incomplete.*/\1/p' \
		"$daemon_err") + 0))
}

# clear_tier: remove everything from the tier.
clear_tier() {
	"$refrain" clear "$work/tier" >/dev/null
	lost=0
}

all_right() {
	got=0
	"$refrain" verify "$work/tier" >"$work/verify" 2>&1 || got=$?
	expect "verify: $(cat "$work/verify")" "$got" 0
}

has_entries() {
	[ "$(status_field entries)" -ge "$1" ]
}

within_budget() {
	[ "$(status_field cache_used_bytes)" -le \
		"$(status_field cache_capacity_bytes)" ] ||
		fail 'more than the budget is used'
}

lost=0
start
pieces 1
fetched $size
# The parts of incomplete chunks are in the tier or in memory.
wait_for 20 has_entries \
	$((chunks - (staging + dropped) / (file % 65536))) ||
	fail "$(status_field entries) entries"
stop
all_right

start
pieces 2
fetched $staging
within_budget
# Read until nothing is missing any more. If nothing was dropped, this takes one
# epoch.
for seed in 3 11 12 13 14 15 16 17 18 19; do
	stop
	start
	pieces $seed
	fetched 0
	[ $((bytes + $(status_field partial_dropped))) -gt 0 ] || break
done
wait_for 20 has_status entries $chunks ||
	fail "$(status_field entries) entries of $chunks chunks"
stop

# The daemon is killed again and again while parts are written.
clear_tier
for seed in 4 5 6; do
	start
	read_pieces $seed 16384 1 >"$work/out" 2>&1 &
	reader=$!
	wait_for 20 has_entries $((20 * (seed - 3))) || fail 'no parts'
	kill_mount
	wait $reader && fail 'the reader outlived the mount'
	all_right
done
start
pieces 7
fetched $size
within_budget
stop

# If the mount ends normally, parts in memory are written, too.
clear_tier
start
read_pieces 10 16384 2 || fail 'wrong bytes'
stop
all_right
start
read_pieces 10 16384 2 || fail 'wrong bytes of parts'
bytes=$(status_field origin_bytes)
fetched 0
[ "$(status_field part_bytes)" -gt 0 ] || fail 'parts are not counted'
within_budget
stop

# Each part in the tier is damaged.
clear_tier
start
read_pieces 8 16384 2 || fail 'wrong bytes'
stop
find "$work/tier" -type f -size +60k | while read -r f; do
	printf 'damaged' | dd of="$f" bs=1 seek=2000 conv=notrunc 2>/dev/null
done
start
pieces 9
[ "$(status_field checksum_errors)" -gt 0 ] || fail 'no damage was seen'
fetched $size
within_budget
stop_mount
all_right

# A mount that ends reports the parts that it could not keep. Here they are a
# page of each chunk, and the tier has room for less than half of them.
lost=0
start_mount "$src" "$mnt" --cache "$work/small:600K" --limit 64K --chunk 64K \
	--staging $staging
python3 "$here/cache_parts.py" "$mnt" "$src" 4096 1 16 shard1 ||
	fail 'wrong bytes'
expect 'dropped before the end' "$(status_field partial_dropped)" 0
stop
[ $lost -gt 0 ] || fail 'the mount does not say what it dropped at its end'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A file that is read in pieces smaller than its chunks, with less memory than
# it has bytes: each byte comes from the source once, also beyond kill -9 and
# remounts; a part that was damaged is fetched again.
set -eu
name=parts
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3

here=$(cd "$(dirname "$0")" && pwd)
size=8000000 staging=1048576
mkdir -p "$src"
head -c $size /dev/urandom >"$src/shard"

start() {
	start_mount "$src" "$mnt" --cache "$work/tier:20M" --limit 64K \
		--chunk 64K --staging $staging
}

# read_pieces SEED BYTES STEP
read_pieces() {
	python3 "$here/parts.py" "$mnt/shard" "$src/shard" "$2" "$1" "$3"
}

# pieces SEED: an epoch of pieces of 16 KiB; bytes from the source in $bytes.
pieces() {
	before=$(status_field origin_bytes)
	read_pieces "$1" 16384 1 || fail "wrong bytes in epoch $1"
	bytes=$(($(status_field origin_bytes) - before))
}

# fetched MOST: no more than that, but for what is counted as dropped.
fetched() {
	dropped=$(status_field partial_dropped)
	note "$bytes bytes from the source, $dropped dropped"
	[ "$bytes" -le $(($1 + dropped)) ] ||
		fail "$bytes bytes from the source, not $1 and $dropped"
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

start
pieces 1
fetched $size
# What is not whole lies in the tier, or in memory.
[ "$(status_field entries)" -gt $(((size - staging) / 65536)) ] ||
	fail "$(status_field entries) entries"
stop_mount
all_right

start
pieces 2
fetched $staging
within_budget
stop_mount
start
pieces 3
fetched 0
expect 'entries: one a chunk' "$(status_field entries)" \
	$(((size + 65535) / 65536))
stop_mount

# Killed while parts are written, again and again.
"$refrain" clear "$work/tier" >/dev/null
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
stop_mount

# At an orderly end what waits in memory is written, too.
"$refrain" clear "$work/tier" >/dev/null
start
read_pieces 10 16384 2 || fail 'wrong bytes'
before=$(status_field partial_dropped)
stop_mount
all_right
start
read_pieces 10 16384 2 || fail 'wrong bytes of parts'
bytes=$(status_field origin_bytes)
fetched "$before"
[ "$(status_field part_bytes)" -gt 0 ] || fail 'parts are not counted'
within_budget
stop_mount

# Damaged: each part that there is.
"$refrain" clear "$work/tier" >/dev/null
start
read_pieces 8 16384 2 || fail 'wrong bytes'
stop_mount
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

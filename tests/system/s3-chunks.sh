#!/bin/sh
# SPDX-License-Identifier: MIT
# A large file of s3:// takes one GET for each chunk, whatever the pieces, the
# order and the number of readers are, and no byte comes twice. Of a file for
# which no tier has room, only the bytes that are read are fetched.
set -u
name=s3-chunks
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'

here=$(cd "$(dirname "$0")" && pwd)
mib=1048576
far_start files=10 delay_ms=5

# cold SIZE TIER [OPTION ...]: mount ten files of this size that are not cached.
cold() {
	size=$1 tier=$2 next=0
	shift 2
	far_set "size=$size"
	start_mount s3://many "$work/mnt" --cache "$work/tier:$tier" \
		--endpoint-url "$far" --limit 1M "$@"
	scan_through
}

# fresh: set $file to the next file; $work/want has its bytes.
fresh() {
	key=f000000$next.bin
	next=$((next + 1))
	file=$work/mnt/$key
	far_set verify=0
	curl -sf "$far/many/$key" -o "$work/want" || fail "no $key"
	far_set verify=1
	far_zero
	before=$(status_field origin_bytes)
}

# cost GETS BYTES WHAT: check the requests and bytes since fresh().
cost() {
	expect "GETs of $3" "$(far_count gets)" "$1"
	expect "HEADs of $3" "$(far_count heads)" 0
	expect "bytes of $3" $(($(status_field origin_bytes) - before)) "$2"
}

gone() {
	stop_mount
	rm -rf "$work/tier"
}

# in_order PIECE
in_order() {
	dd if="$file" bs="$1" 2>"$work/dd" | cmp - "$work/want" ||
		fail "wrong bytes in pieces of $1: $(cat "$work/dd")"
}

# mixed PIECE: read the file in pieces in random order.
mixed() {
	ln -sf want "$work/$key"
	python3 "$here/cache_parts.py" "$work/mnt" "$work" "$1" 7 1 "$key" ||
		fail "wrong bytes in mixed pieces of $1"
}

# at FIRST BYTES: read once at FIRST.
at() {
	for f in "$file" "$work/want"; do
		dd if="$f" bs="$2" count=1 skip="$1" iflag=skip_bytes \
			2>/dev/null >"$work/got.${f##*/}"
	done
	cmp "$work/got.${file##*/}" "$work/got.want" ||
		fail "wrong bytes at $1"
}

# readers N: start N readers, each from another position to the end of the file.
readers() {
	pids='' i=0
	while [ $i -lt "$1" ]; do
		tail -c +$((i * size / $1 + 1)) "$file" >"$work/part.$i" &
		pids="$pids $!"
		i=$((i + 1))
	done
	for p in $pids; do
		wait "$p" || fail 'a reader failed'
	done
	while [ $i -gt 0 ]; do
		i=$((i - 1))
		tail -c +$((i * size / $1 + 1)) "$work/want" |
			cmp - "$work/part.$i" || fail "wrong bytes of reader $i"
	done
}

# -- A chunk that a tier has room for: one GET, even for the chunk in which the
# file ends
for size in $((12 * mib)) $((12 * mib + 12345)); do
	chunks=$(((size + mib - 1) / mib))
	cold "$size" 200M
	for piece in 4K 128K 1M 300000; do
		fresh
		in_order $piece
		cost $chunks "$size" "pieces of $piece"
	done
	for piece in 4096 131072 300000; do
		fresh
		mixed $piece
		cost $chunks "$size" "mixed pieces of $piece"
	done
	for n in 2 8; do
		fresh
		readers $n
		cost $chunks "$size" "$n readers"
	done
	# A read in the middle fetches its chunk, and a read across a border
	# fetches both chunks.
	fresh
	at $((3 * mib + 700000)) 4096
	cost 1 $mib 'a read in the middle'
	at $((6 * mib - 20000)) 40000
	cost 3 $((3 * mib)) 'a read across a border'
	gone
done

# -- Requests that are not a multiple of a chunk, and a chunk longer than one
cold $((12 * mib)) 200M --chunk 5M
fresh
in_order 128K
cost 3 $((12 * mib)) 'chunks of 5 MiB'
gone
cold $((12 * mib)) 200M --chunk 10M
fresh
at $((9 * mib)) 4096
cost 1 $((2 * mib)) 'the end of a chunk of 10 MiB'
in_order 128K
cost 3 $((12 * mib)) 'chunks of 10 MiB'
gone

# -- A file of one item that is read from its end on
cold 3000000 200M --limit 16M
fresh
at 2990000 4096
in_order 128K
cost 1 3000000 'a file read from its end on'
gone

# -- What no tier has room for
cold $((12 * mib)) 64K
fresh
in_order 128K
# Reads that arrive in another order than they were sent look less like one
# reader that reads the file in order.
cost "$(far_count gets)" $((12 * mib)) 'a file in order, passing through'
[ "$(far_count gets)" -lt 48 ] ||
	fail "$(far_count gets) GETs of a file in order, passing through"
fresh
for i in 1 4 7 10; do
	at $((i * mib + 524288)) 65536
done
cost 4 $((4 * 65536)) 'ranges, passing through'
gone

# -- A reader of a distant origin has 8 MiB in flight
far_set delay_ms=50
cold $((48 * mib)) 200M
fresh
in_order 128K
cost 48 $((48 * mib)) 'a file in order, from far away'
[ "$(far_count most)" -ge 6 ] ||
	fail "$(far_count most) GETs at a time from far away"
gone

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A subset of a dataset: nested, listed, warmed into a cache that cannot hold
# the dataset, and then read from the cache alone. The order does not depend on
# what is cached.
set -eu
name=load-subset
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

list() {
	"$refrain" load "$1" --batch 16 --subset "$2" --list-examples
}

list "$src/train" 300 | sort >"$work/all"
find "$src/train" -name '*.jpg' | sort >"$work/found"
cmp -s "$work/all" "$work/found" || fail 'the list of all examples'
list "$src/train" 100 | sort >"$work/100"
list "$src/train" 101 | sort >"$work/101"
list "$src/train" 250 | sort >"$work/250"
expect 'lines of the list' "$(wc -l <"$work/100")" 100
expect 'names in it' "$(sort -u "$work/100" | wc -l)" 100
expect 'examples of 100 that 101 lacks' \
	"$(comm -23 "$work/100" "$work/101" | wc -l)" 0
expect 'examples of 101 that 250 lacks' \
	"$(comm -23 "$work/101" "$work/250" | wc -l)" 0
"$refrain" load "$src/train" --batch 16 --subset 100 --subset-seed 1 \
	--list-examples | sort >"$work/other"
if cmp -s "$work/100" "$work/other"; then
	fail 'subset_seed has no effect'
fi
note 'subsets are nested'

# Runs on a bare directory read the files of the list.
load "$src/train" --epochs 3 --subset 100 --trace "$work/trace"
expect fresh "$(value fresh)" 300
expect 'distinct examples' "$(cut -f 2 "$work/trace" | sort -u | wc -l)" 100
want="$(value stream_hash) $(value pixel_hash)"

# subset_runs WHAT: check that a run on the mount equals the run on the
# directory.
subset_runs() {
	load "$mnt/train" --epochs 3 --subset 100
	expect "hashes, $1" "$(value stream_hash) $(value pixel_hash)" "$want"
}

# room_mount: mount with room for the subset, but not for the dataset.
room_mount() {
	start_mount "$src" "$mnt" --cache "$work/room:$((bytes * 3 / 4096))K"
	scan_through
}

room_mount
"$refrain" load "$mnt/train" --batch 16 --subset 100 --list-examples |
	"$refrain" warm "$mnt" - >"$work/warm" 2>&1 ||
	fail "$(cat "$work/warm")"
grep -q '^100 items' "$work/warm" || fail "$(cat "$work/warm")"
before=$(status_field origin_bytes)
subset_runs 'subset in the cache'
expect 'bytes from the origin in three epochs' \
	"$(($(status_field origin_bytes) - before))" 0
stop_mount
note 'a subset in the cache reads nothing from the origin'

# Without warming, the first epoch fills the cache, and the others read nothing.
rm -rf "$work/room"
room_mount
subset_runs 'cache empty'
expect 'bytes from the origin in three epochs' "$(status_field origin_bytes)" \
	"$(tr '\n' '\0' <"$work/100" | xargs -0 cat | wc -c)"
subset_runs 'cache half full'
stop_mount
warm_mount
subset_runs 'cache full'
stop_mount
start_mount "$src" "$mnt" --cache "$work/tiny:64K"
subset_runs 'next to no cache'
note 'the order does not depend on the cache'

# Files of shards are listed once.
tar -C "$src/train" -cf "$work/a.tar" .
"$refrain" load "$work/a.tar" --batch 16 --list-examples >"$work/list"
expect 'the list of a tar' "$(cat "$work/list")" "$work/a.tar"
if "$refrain" warm "$mnt" - </dev/null >"$work/out" 2>&1; then
	fail 'warm has accepted an empty list'
fi
grep -q 'standard input has no path' "$work/out" || fail "$(cat "$work/out")"
note 'lists of shards, and an empty list'

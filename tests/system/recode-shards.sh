#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Shards of `refrain recode` are what tar(1) and the loader read: the same
# examples with the same labels, in the same order.
set -eu
name=recode-shards
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires tar sha256sum
# shellcheck source=tests/system/recode-lib.sh
. "$(dirname "$0")/recode-lib.sh"
XDG_CACHE_HOME=$work/xdg
export XDG_CACHE_HOME

# -- A name that needs a header of its own, and one that is just too short
long=class_000/$(printf '%0200d' 7)
just=class_000/$(printf '%090d' 8)
cp "$data/class_000/00000001.jpg" "$data/$long.jpg"
cp "$data/class_000/00000001.jpg" "$data/$just"
rm "$data/nothing.jpg" "$data/class_002/cut.jpg"
rmdir "$data/empty"

ends 0 re-coded --restart 4 "$data" "$work/files"
ends 0 re-coded --restart 4 --shards 40K "$data" "$work/tars"
[ "$(find "$work/tars" -name '*.tar' | wc -l)" -gt 2 ] || fail 'one shard'
mkdir "$work/untar"
for t in "$work"/tars/*.tar; do
	tar -xf "$t" -C "$work/untar" 2>"$work/err" || fail "$(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$(cat "$work/err")"
done
rm -f "$work/files/recode.json" "$work/files/.refrain-recode"
diff -r "$work/files" "$work/untar" || fail 'shards have other files'
note 'tar extracts what was written'

# -- The loader
rm "$data/$just"
ends 0 re-coded --restart 4 --shards 41K "$data" "$work/loaded"
hash_of() {
	"$refrain" load "$1" --batch 5 --echo 2 --seed 4 --epochs 2 --json \
		--size 32 | sed 's/[{,}]/\n/g' | grep '"\(stream\|pixel\)_hash"'
}
hash_of "$data" >"$work/one"
hash_of "$work/loaded" >"$work/two"
cmp "$work/one" "$work/two" || fail 'the loader serves something else'
note 'the loader serves the same batches from shards'

cp "$data/class_000/00000001.jpg" "$data/class_000/00000001.b.jpg"
ends 1 'would be one example in a tar' --shards 40K "$data" "$work/same"

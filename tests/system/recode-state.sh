#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A state that was saved on originals is refused on a copy that was re-coded
# with loss, and the reverse; a copy without loss serves the same batches.
set -eu
name=recode-state
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/recode-lib.sh
. "$(dirname "$0")/recode-lib.sh"
XDG_CACHE_HOME=$work/xdg
export XDG_CACHE_HOME
rm "$data/class_002/cut.jpg" "$data/nothing.jpg"

# load STATE DATASET: some epochs of batches, continued.
load() {
	"$refrain" load "$2" --batch 4 --echo 2 --epochs 3 --seed 5 --size 32 \
		--state "$1" --json >"$work/out" 2>"$work/err"
}

# hashes DATASET
hashes() {
	"$refrain" load "$1" --batch 4 --echo 2 --epochs 2 --seed 5 --size 32 \
		--json | sed 's/[{,}]/\n/g' | grep "\"$2\""
}

ends 0 re-coded --quality 50 "$data" "$work/q50"
ends 0 re-coded --restart row "$data" "$work/exact"
expect 'stream of a copy with loss' "$(hashes "$work/q50" stream_hash)" \
	"$(hashes "$data" stream_hash)"
[ "$(hashes "$work/q50" pixel_hash)" != "$(hashes "$data" pixel_hash)" ] ||
	fail 'quality 50 lost nothing'
expect 'pixels of an exact copy' "$(hashes "$work/exact" pixel_hash)" \
	"$(hashes "$data" pixel_hash)"

load "$work/state" "$data" || fail "$(cat "$work/err")"
! load "$work/state" "$work/q50" || fail 'a copy with loss was not noticed'
grep -q 'another rendition' "$work/err" || fail "$(cat "$work/err")"
load "$work/state" "$work/exact" || fail "$(cat "$work/err")"
load "$work/lossy" "$work/q50" || fail "$(cat "$work/err")"
! load "$work/lossy" "$data" || fail 'the originals were not noticed'
grep -q 'another rendition' "$work/err" || fail "$(cat "$work/err")"
# The catalogue of the same directory is older than the loss.
cp "$work/q50/recode.json" "$data/"
! load "$work/state" "$data" || fail 'a new recode.json was not noticed'
note 'a state knows the rendition of its dataset'

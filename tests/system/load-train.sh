#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The example trainer, which uses the loader: it learns, and echoes save half of
# the reads and decodes.
set -eu
work=$(mktemp -d "$PWD/train.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/data"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

fail() {
	echo "FAILED: $*"
	exit 1
}

# Every fifth image is a test image.
./refrain make-dataset --classes 4 --images 1000 --size 32x32 \
	"$work/data/train" >/dev/null
for class in "$work"/data/train/*; do
	mkdir -p "$work/data/test/${class##*/}"
	mv "$class"/*[05].jpg "$work/data/test/${class##*/}"
done

# learns LEAST FRESH SERVED [ECHO EPOCHS]: check that the accuracy after the
# last epoch is at least LEAST, and that FRESH images were decoded and SERVED
# were served.
learns() {
	least=$1 fresh=$2 served=$3
	shift 3
	examples/train "$work/data" "$@" >"$work/out" || fail "train $*"
	tail -n 1 "$work/out" | awk -v least="$least" -v fresh="$fresh" \
		-v served="$served" '{ exit !($2 >= least && $2 <= 1 &&
			$3 == fresh && $4 == served) }' ||
		fail "train $*: $(cat "$work/out")"
}

learns 0.8 3200 3200
[ "$(wc -l <"$work/out")" -eq 5 ] || fail "$(cat "$work/out")"
learns 0.8 3200 6400 2
# With echoes, half of the reads and decodes are enough for the same number of
# steps.
learns 0.7 1600 3200 2 2

! examples/train "$work/nowhere" 2>"$work/err" || fail 'it needs no dataset'
grep -q "$work/nowhere/train" "$work/err" || fail "$(cat "$work/err")"

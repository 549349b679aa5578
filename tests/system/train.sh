#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The trainer of the examples on the loader: it learns, with echoes too, and
# on any number of threads it comes to the same figures.
set -eu
train=$PWD/examples/train-cnn
[ -x "$train" ] || {
	echo 'skipped: examples/train-cnn is not built: no BLAS'
	exit 77
}
work=$(mktemp -d "$PWD/train.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/data"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

fail() {
	echo "FAILED: $*"
	exit 1
}

# Every fifth picture is for the test.
./refrain make-dataset --classes 4 --images 1000 --size 32x32 \
	"$work/data/train" >/dev/null
for class in "$work"/data/train/*; do
	mkdir -p "$work/data/test/${class##*/}"
	mv "$class"/*[05].jpg "$work/data/test/${class##*/}"
done

# train OPTION ...: its lines without the times are in $work/out.
train() {
	"$train" --epochs 4 --batch 32 --width 8 "$@" "$work/data" \
		>"$work/said" || fail "train-cnn $*"
	sed 's/ seconds .*//' "$work/said" >"$work/out"
}

# learned LEAST: the accuracy after the last epoch.
learned() {
	awk -v least="$1" '{ for (i = 1; i < NF; i++)
		if ($i == "accuracy") last = $(i + 1) }
		END { exit !(last >= least) }' "$work/out" || {
		cat "$work/out"
		fail "it has learned less than $1"
	}
}

train --threads 1
learned 0.8
cp "$work/out" "$work/one"
grep -q 'epoch 4  steps 100  fresh 3200  served 3200' "$work/out" ||
	fail "$(cat "$work/out")"
train --threads 4
cmp "$work/one" "$work/out" || fail 'threads change the figures'
train --echo 2
learned 0.8
grep -q 'epoch 4  steps 200  fresh 3200  served 6400' "$work/out" ||
	fail "$(cat "$work/out")"
# Half of the reads and decodes for as many steps.
train --echo 2 --epochs 2
learned 0.6
grep -q 'epoch 2  steps 100  fresh 1600  served 3200' "$work/out" ||
	fail "$(cat "$work/out")"

# Jobs that share their batches learn the same as apart: search-cnn compares.
XDG_RUNTIME_DIR=$work
export XDG_RUNTIME_DIR
examples/search-cnn "$train" 0.02,0.1 --epochs 1 --batch 32 --width 8 \
	--threads 1 "$work/data" >"$work/out" || fail 'search-cnn'
grep -q '^0.02 ' "$work/out" || fail "$(cat "$work/out")"
grep -q '^processors' "$work/out" || fail "$(cat "$work/out")"

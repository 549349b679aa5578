#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make-dataset --boxes --masks --yolo: boxes, lines and masks describe the same
# objects, and pictures are the same with any number of threads.
set -eu
name=make-objects
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

set -- --classes 5 --images 60 --size 150x110 --seed 3
"$refrain" make-dataset "$work/all" "$@" --boxes --masks --yolo >/dev/null
"$refrain" make-dataset "$work/one" "$@" --boxes --masks --yolo --threads 1 \
	>/dev/null
diff -r "$work/all" "$work/one" >/dev/null ||
	fail 'another number of threads draws other pictures'
"$refrain" make-dataset "$work/boxes" "$@" --boxes >/dev/null
cmp -s "$work/boxes/instances.json" "$work/all/instances.json" ||
	fail 'boxes differ without masks'
{ [ ! -e "$work/boxes/masks" ] && [ ! -e "$work/boxes/labels" ]; } ||
	fail 'masks or labels that nobody wanted'
"$refrain" make-dataset "$work/many" --classes 7 --images 9 --boxes \
	2>"$work/err" && fail 'seven kinds of objects'
grep -q 'must be at most 6' "$work/err" || fail "no reason: $(cat "$work/err")"
[ ! -e "$work/many" ] || fail 'a refused dataset was begun'
note 'pictures of objects are the same with any number of threads'

python=$(sed -n 's/^PYTHON = //p' Makefile)
: "${python:=python3}"
"$python" -c 'import numpy, PIL.Image' 2>/dev/null ||
	skip "$python has no NumPy or no PIL"
"$python" "$(dirname "$0")/objects_truth.py" "$work/all" ||
	fail 'masks and boxes disagree'
note 'masks, boxes and lines of YOLO say the same'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files that are not examples, and classes without examples, are counted and
# named.
set -eu
name=load-left-out
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

mkdir "$work/left" "$work/left/a" "$work/left/b"
printf gif >"$work/left/a/1.gif"
cp "$(find "$data/" -name '*.jpg' | head -n 1)" "$work/left/b/"
"$refrain" load "$work/left" --batch 1 >"$work/out" || fail 'load with a GIF'
grep -q "^skipped  *1 files .* the first is 'a/1.gif'" "$work/out" ||
	fail "the skipped file is not named: $(cat "$work/out")"
grep -q "^empty  *1 of 2 classes .* the first is 'a'" "$work/out" ||
	fail "the empty class is not named: $(cat "$work/out")"
"$refrain" load "$work/left" --batch 1 --json >"$work/json" ||
	fail 'load --json with a GIF'
about='a folder with a GIF'
is skipped_files 1
is skipped_first a/1.gif
is empty_classes 1
is empty_first a
is classes 2
note 'what is left out is counted and named'

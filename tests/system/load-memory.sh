#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load` with little memory: for echoes it keeps the file or the pixels,
# whichever is smaller, and it reports rereads with the memory that would avoid
# them.
set -eu
name=load-memory
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

# Files that are larger than their pixels: the pixels are kept instead.
about='large files'
find "$data" -name '*.jpg' -exec sh -c 'for f; do
	head -c 60000 /dev/urandom >>"$f"
done' x {} +
load --echo 4 --window 512 --memory 20M
is files_read $fresh
# No example is decoded again, even of the first ones, before the sizes of files
# are known.
is redecodes 0
is decodes $fresh
note 'of large files the pixels are kept'

# tight MEMORY: print the report of a run on images that are too large for the
# memory.
tight() {
	"$refrain" load "$work/large" --batch 16 --epochs 2 --size 32 --echo 2 \
		--memory "$1" >"$work/out" || fail "load --memory $1"
}

"$refrain" make-dataset --classes 2 --images 200 --size 640x480 \
	"$work/large" >/dev/null
tight 8M
again=$(sed -n 's/^rereads  *\([0-9]*\) files .*/\1/p' "$work/out")
wanted=$(sed -n 's/^rereads .* --memory \([0-9]*M\),.*/\1/p' "$work/out")
{ [ -n "$again" ] && [ -n "$wanted" ]; } ||
	fail "rereads are not reported: $(cat "$work/out")"
tight "$wanted"
now=$(sed -n 's/^rereads  *\([0-9]*\) files .*/\1/p' "$work/out")
[ "${now:-0}" -le $((again / 50)) ] ||
	fail "$again files were read again, and $now with --memory $wanted"
note "$again rereads, and ${now:-0} with --memory $wanted as advised"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every request about a node id of another instance of a mount is answered with
# ESTALE, and never with the file that has this number in this instance (V2).
set -eu
name=survive-foreign-ids
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires root fuse python3

here=$(cd "$(dirname "$0")" && pwd)
mkdir "$src/dir"
echo 'what the file has' >"$src/dir/file"
ln -s file "$src/dir/link"
timeout $((120 * patience)) python3 "$here/foreign_ids.py" "$refrain" "$src" \
	"$mnt" "$work/cache:4M" >"$work/said" 2>&1 ||
	fail "$(cat "$work/said")"
note "$(tail -n 1 "$work/said")"

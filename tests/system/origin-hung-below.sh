#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The source is a directory, named by a link, in a file system on which every
# access hangs in the kernel: cached files are served.
set -eu
name=origin-hung-below
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/origin-hung-lib.sh
. "$(dirname "$0")/origin-hung-lib.sh"

hanging_source
daemon=
ln -s far/top1 "$work/link1"
start_mount "$work/link1" "$mnt" --cache "$work/c1:9M"
expect 'a file of it' "$(cat "$mnt/d7/f")" 7
scan_through
stop_mount
stop_process "$far"
start_mount "$work/link1" "$mnt" --cache "$work/c1:9M" --timeout 1
expect 'a file of the cache' "$(cat "$mnt/d7/f")" 7
kill -CONT $far
stop_mount
hanging_source_ends

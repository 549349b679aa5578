#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Nothing is left of old versions of files, whenever the daemon was killed, even
# of a version that was found and cached while no manifest was written. A daemon
# that was killed while it wrote the manifest leaves no temporary file.
set -eu
name='mount-kill-swept'
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3
# shellcheck source=tests/system/mount-kill-lib.sh
. "${srcdir:-.}/tests/system/mount-kill-lib.sh"

fast_size=$((bytes * 2))
slow_size=$((bytes * 2))
mount_it --revalidate 1
wait_for 20 is_mounted || fail 'no mount at the end'
scan_through
file=$(sed -n 5p "$work/files")
echo 'the second version' >"$work/new"
mv "$work/new" "$src/$file"
wait_for 20 cmp -s "$src/$file" "$mnt/$file" || fail 'a change is not seen'
status_field ready >/dev/null # fetched items are published before this answer
kill_mount
echo 'and a third one' >"$work/new"
mv "$work/new" "$src/$file"
"$reader" "$src" --make-sums "$sums" >/dev/null
all_cached

# The daemon was killed while it wrote the manifest, and the next daemon has
# nothing to write.
: >"$slow/manifest.new"
mount_it
wait_for 20 is_mounted || fail 'no mount at the end'
all_right
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# When `refrain umount` returns, the daemon is gone and its cache free, every
# time; a command that watches the mount ends with it.
set -eu
name=mount-umount
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse
# shellcheck source=tests/system/mount-umount-lib.sh
. "${srcdir:-.}/tests/system/mount-umount-lib.sh"

# The caller may have closed the standard descriptors before.
timeout $((20 * patience)) "$refrain" mount "$src" "$mnt" --cache "$cache:8M" \
	<&- >&- 2>&- || fail 'cannot mount with closed standard descriptors'
diff -r "$src" "$mnt" || fail 'a mount without standard descriptors'
"$refrain" umount "$mnt" <&- >&- 2>&- || fail 'cannot unmount without them'

# Check several times that the daemon is really gone: the next mount can use the
# cache.
for _ in 1 2 3 4 5; do
	in_background
	sums_right "$src.sums" "$mnt"
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	not_running "$pid" || fail 'the daemon is still there'
	! is_mounted || fail 'the mount is still there'
done

# A command that watches the mount ends with it.
in_background
"$refrain" status --watch "$mnt" >"$work/watched" 2>&1 &
watch=$!
wait_for 20 grep -qs 'scan' "$work/watched" || fail 'watch shows nothing'
"$refrain" umount "$mnt" || fail 'cannot unmount'
wait "$watch" || fail "watch failed: $(cat "$work/watched")"

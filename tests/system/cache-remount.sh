#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Cached files are not fetched again, after an unmount and after kill -9. The
# next mount detaches the dead one.
set -eu
name=cache-remount
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/cache-remount-lib.sh
. "$(dirname "$0")/cache-remount-lib.sh"

filled

# Remount after an unmount.
start
epoch 0
expect 'misses after an unmount' "$(status_field misses)" 0

# Remount after kill -9: the mount is dead, and the next mount takes its place.
kill_mount
stat -f "$mnt" >/dev/null 2>&1 && fail 'a mount without a daemon answers'
expect 'mounts that are left' "$(mounts_below "$mnt" | wc -l)" 1
start
expect 'mounts' "$(mounts_below "$mnt" | wc -l)" 1
epoch 0
note "all $bytes bytes from the cache after an unmount and after kill -9"
stop_mount

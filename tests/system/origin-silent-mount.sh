#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount with a kept manifest does not wait for a source that answers nothing
# (O5), and serves cached files.
set -eu
name=origin-silent-mount
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/origin-hung-lib.sh
. "$(dirname "$0")/origin-hung-lib.sh"

warm_tier
stop_mount

# If the mount waited for its source, the test would give up before 600 s.
start_mount "$src" "$mnt" --cache "$cache:20M" --timeout 600 \
	--fault stall=1,meta=1
expect 'a file of the cache' "$(cat "$mnt/top1/d7/f")" 7
stop_mount

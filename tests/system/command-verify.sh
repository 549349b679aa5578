#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain verify` names a damaged entry until it was fetched again, by the
# mount and by the directory; `refrain clear` removes a cache that nobody uses,
# and nothing else.
set -eu
name=command-verify
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/command-lib.sh
. "$(dirname "$0")/command-lib.sh"

mounted "$work/cache:100M"
warm 0

ends 0 "^$all_items entries .* checked, 0 bad" verify "$mnt"
ends 0 "^$all_items entries .* checked, 0 bad" verify "$work/cache"
ends 1 'in use by another mount' clear "$work/cache"
expect 'entries' "$(status_field entries)" "$all_items"
entry=$(find "$work/cache/"?? -type f -size +40k | sort | head -n 1)
# Another byte than the one there, whatever that is.
other=X
[ "$(dd if="$entry" bs=1 skip=20000 count=1 2>/dev/null | tr -d '\0')" != X ] ||
	other=Y
printf %s $other | dd of="$entry" bs=1 seek=20000 conv=notrunc 2>/dev/null
ends 1 "^.*${entry##*/}: " verify "$mnt"
grep -q "$all_items entries .* checked, 1 bad" "$work/out" || fail 'not 1 bad'
drop_caches
sums_right "$src.sums" "$mnt"
expect 'entries found bad' "$(status_field checksum_errors)" 1
ends 0 'checked, 0 bad' verify "$mnt"
stop_mount
ends 0 ' entries removed' clear "$work/cache"
[ -z "$(ls -A "$work/cache")" ] || fail "left: $(ls -A "$work/cache")"
ends 1 'is not a cache' clear "$src"

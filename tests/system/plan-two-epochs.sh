#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Two epochs on one input of `refrain plan`: an empty line ends an epoch;
# without it, names that appear twice are left out.
set -eu
name=plan-two-epochs
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/plan-lib.sh
. "$(dirname "$0")/plan-lib.sh"

half_cached
order 11 >"$work/order"
order 12 >"$work/next"
{
	cat "$work/order"
	echo
	cat "$work/next"
} >"$work/both"
rest=$((size * files - $(status_field resident_bytes)))
count
begin "$work/both" --batch 16
train "$work/order"
train "$work/next"
ended
expect 'positions of two epochs' "$(planned positions)" $((2 * files))
expect 'names that come twice' "$(planned duplicate)" 0
expect 'items wasted in two epochs' "$(counted prefetch_wasted)" 0
expect 'bytes of two epochs, or carried' \
	"$(($(counted origin_bytes) - $(counted reread_bytes) +
	$(counted prefetch_carried_bytes)))" $((2 * rest))
cat "$work/order" "$work/next" >"$work/both"
begin "$work/both"
train "$work/order"
ended
expect 'positions without an empty line' "$(planned positions)" $files
expect 'names that come twice' "$(planned duplicate)" $files
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load --echo auto` on a mount whose origin is slow at first, and fast
# later: the factor returns to R.
set -eu
name=load-auto-returns
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-auto-lib.sh
. "$(dirname "$0")/load-auto-lib.sh"

# The mount has memory for only a part of an epoch, so that the second epoch is
# not fetched before the origin is fast.
comes_back() {
	slow_mount "$1" 64K --limit 64K --chunk 64K --pages 64K --staging 1M
	rm -f "$work/log"
	load "$mnt" --echo auto --echo-log "$work/log" --step-ms "$1" \
		--epochs 2 &
	loading=$!
	begins_to_echo || return 1
	"$refrain" fault "$mnt" delay=0ms || fail 'cannot set a fault'
	wait $loading || exit 1
	is_so "$(value echo_factor_last) < 2" && follows_mount 1 "$1" ||
		return 1
	[ "$e" != 1.0 ] ||
		[ "$(tail -n 1 "$work/log" | cut -d ' ' -f 2)" = 1/1 ]
}
slower comes_back 5 20 80

stop_mount

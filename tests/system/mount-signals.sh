#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Signals in the middle of a cold epoch: the daemon exits with 0, and leaves
# only a complete cache.
set -eu
name=mount-signals
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 flock
# shellcheck source=tests/system/mount-end-lib.sh
. "$(dirname "$0")/mount-end-lib.sh"

for how in TERM INT HUP TERM,tmpfile; do
	case $how in
	*,*) REFRAIN_DISABLE=${how#*,} && export REFRAIN_DISABLE ;;
	esac
	begin --fault delay=20ms
	unset REFRAIN_DISABLE
	scan_through
	read_on --sums "$work/sums"
	wait_for 10 more_than admitted 20 || fail "$how: no epoch"
	kill -s "${how%,*}" "$daemon"
	ended_within 5
	readers_end "$how"
	all_gone "$how"
	n=$(sed -n 's/^\([0-9]*\) entries.*/\1/p' "$work/verified")
	[ "$n" -ge 20 ] || fail "$how: only $n entries stay"
	[ "$n" -lt 300 ] || fail "$how: that was not in the middle"
	note "$how: ended in $took s with $n entries"
done

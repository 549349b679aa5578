#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A flood of errors makes a few lines in the log, which say how many errors
# there were.
set -u
name='log-flood'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3
# shellcheck source=tests/system/log-lib.sh
. "$(dirname "$0")/log-lib.sh"

mount_logged --fault 'error=1' --timeout 1
for i in 1 2 3 4 5 6; do
	ls "$mnt" >/dev/null
	epoch && fail 'an epoch of errors'
done
failures=$(status_field origin_failures)
stop_mount
[ "$failures" -ge 100 ] || fail "only $failures failures"
[ "$(wc -c <"$log")" -lt 12000 ] || fail "a log of $(wc -c <"$log") bytes"
must_log "error: [0-9]* more like this since ..:..:..Z: a reader of"
more='\([0-9]*\) more like this since [0-9:]*Z: '
counted=$(sed -n "s/.* error: ${more}the source failed.*/\\1/p
	s/.* error: the source failed.*/1/p" "$log" |
	awk '{ n += $1 } END { print n }')
expect 'failures in the log' "$counted" "$failures"
note "$failures failures in $(wc -c <"$log") bytes of log"

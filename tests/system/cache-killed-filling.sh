#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kill -9 while the cache is being filled: the entries are right, within the
# budget, and not fetched again.
set -eu
name=cache-killed-filling
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/cache-remount-lib.sh
. "$(dirname "$0")/cache-remount-lib.sh"

start --fault rate=4M
(
	trap - EXIT
	exec "$reader" "$mnt" --threads 8 >/dev/null 2>&1
) &
readers=$!
admitted() {
	[ "$(status_field admitted)" -ge 30 ]
}
wait_for 20 admitted || fail 'nothing is admitted'
kill_mount
wait $readers && fail 'readers of a dead mount were content'
start
within_budgets
resident=$(status_field resident_bytes)
[ "$resident" -gt 0 ] || fail 'nothing is left after kill -9'
"$refrain" verify "$mnt" >/dev/null || fail 'damaged entries after kill -9'
leftovers=$(find "$work/fast/tmp" "$work/slow/tmp" -type f | wc -l)
expect 'unfinished entries' "$leftovers" 0
epoch $((bytes - resident))
note "$resident of $bytes bytes were left after kill -9 in the middle"
wait_for 20 whole || fail 'not everything was admitted'
stop_mount

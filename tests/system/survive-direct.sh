#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A loader reads entries in the tier of a held mount directly, even while the
# mount has no daemon, and reports the hits to the next daemon.
set -eu
name=survive-direct
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/survive-loaders-lib.sh
. "${srcdir:-.}/tests/system/survive-loaders-lib.sh"

load "$work/want" "$src/train" --epochs 30 --echo 2 || fail 'the directory'
held_mount all:64M
"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
load "$work/warm" "$mnt/train" --epochs 30 --echo 2 --step-ms 20 \
	--step-log "$work/steps" &
job=$!
# steps N: have there been N steps?
steps() {
	[ -e "$work/steps" ] && [ "$(wc -l <"$work/steps")" -ge "$1" ]
}
wait_for 20 steps 50 || fail 'the loader does not start'
stop_process "$holder"
killed
now=$(wc -l <"$work/steps")
wait_for 20 steps $((now + 50)) || fail 'direct hits need the daemon'
[ -z "$(value steps "$work/warm")" ] || fail 'the loader has ended'
kill -CONT "$holder"
told() {
	[ "$(status_field direct_hits)" -gt 0 ]
}
wait_for 20 told || fail 'the next daemon is not told of direct hits'
wait "$job" || fail "the loader failed: $(cat "$work/warm.err")"
same 'warm' "$work/warm" "$work/want"
expect 'direct hits' "$(value direct_hits "$work/warm")" \
	"$(value files_read "$work/warm")"
expect 'returns, warm' "$(value mount_returns "$work/warm")" 1
expect 'reads that came to the mount' \
	$(($(status_field hits) + $(status_field misses))) 0
ends_with_mount

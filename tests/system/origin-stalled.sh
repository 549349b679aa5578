#!/bin/sh
# SPDX-License-Identifier: MIT
#
# While 64 reads hang at the origin, cached files are served as fast as without
# them (M26), names are shown, and other misses are answered. When the origin
# continues, all readers get the right bytes. STALLED_S is the minimum time for
# which the reads hang in the first round.
set -eu
name=origin-stalled
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount
# shellcheck source=tests/system/origin-stalled-lib.sh
. "$(dirname "$0")/origin-stalled-lib.sh"

inflight_at_least() {
	n=$(status_field inflight)
	[ "${n:-0}" -ge "$1" ]
}

for r in $(seq $rounds); do
	files "hang/$r" $held 4096
	(cd "$src" && find "hang/$r" -type f) >"$work/hang.$r"
	"$reader" "$src" --files-from "$work/hang.$r" \
		--make-sums "$work/sums.$r" >/dev/null
done
files other 1 300000
names=$(find "$src" -type f | wc -l)

start_mount "$src" "$mnt" --cache "$work/cache:100M" --fault ''
scan_through
"$refrain" warm "$mnt" hit >/dev/null
before=$(status_field hits)

# names_answered: make calls that need only known names.
names_answered() {
	drop_caches
	timeout $((30 * patience)) ls -lR "$mnt" >"$work/listed" ||
		fail 'listings wait'
	[ "$(grep -c '^-' "$work/listed")" -eq "$names" ] ||
		fail 'names are missing'
	[ ! -e "$mnt/hit/nothing" ] || fail 'a name that is not there'
}

for r in $(seq $rounds); do
	p99 >>"$work/free"
	"$refrain" fault "$mnt" stall=1,match=hang/
	"$reader" "$mnt" --threads $held --files-from "$work/hang.$r" \
		--sums "$work/sums.$r" >"$work/readers" 2>&1 &
	readers=$!
	wait_for 10 inflight_at_least $held || fail "not $held reads hang"
	begin_s=$(date +%s)
	p99 >>"$work/beside"
	while [ "$r" -eq 1 ] &&
		[ $(($(date +%s) - begin_s)) -lt "${STALLED_S:-0}" ]; do
		p99 >>"$work/beside"
	done
	if [ "$r" -eq 1 ]; then
		names_answered
		timeout $((30 * patience)) \
			cmp "$mnt/other/faaa" "$src/other/faaa" ||
			fail 'a miss elsewhere does not get through'
	fi
	[ "$(status_field inflight)" -ge $held ] ||
		fail 'the reads did not hang until the end'
	"$refrain" fault "$mnt" ''
	wait $readers || fail "after the stall: $(cat "$work/readers")"
done
compare "$held reads that hang"
# The reads were hits, and the daemon answered them.
hits=$(($(status_field hits) - before))
[ $hits -ge $((rounds * 1900)) ] || fail "only $hits hits"
expect 'bytes from the origin' "$(status_field origin_bytes)" \
	$((200 * 110000 + rounds * held * 4096 + 300000))
stop_mount

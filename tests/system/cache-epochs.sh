#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each epoch reads from the origin exactly the bytes that were not resident when
# it began, in every way of reading, with one tier and with two. No entry is
# evicted, no budget is exceeded at any time, and every byte is right.
# EPOCH_FILE_BYTES is the size of the largest file.
set -eu
name=epochs
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum shuf

samples=$work/samples
sampler=

# watch_budgets: until `unwatch_budgets`, ask again and again over several
# connections how many bytes are charged and reserved, and add up the entries,
# too.
watch_budgets() {
	python3 "$(dirname "$0")/watch_budgets.py" "$mnt" "$samples" &
	sampler=$!
	wait_for 10 test -e "$samples" || fail 'no sampler'
}

unwatch_budgets() {
	kill "$sampler"
	wait "$sampler" || fail "over budget: $(cat "$samples")"
	note "$(cat "$samples")"
	rm "$samples"
}

# settled: no request is in progress, and all publications have ended.
settled() {
	seen=$(status_field resident_bytes) &&
		[ "$(status_field inflight)" -eq 0 ] &&
		[ "$(status_field resident_bytes)" -eq "$seen" ]
}

# read_all WAY: read everything once, and check the bytes.
read_all() {
	if [ "$1" != programs ]; then
		"$reader" "$mnt" --threads 8 --first-epoch "$number" \
			--io "$1" --sums "$work/sums" >/dev/null ||
			fail "epoch $number by $1: wrong bytes"
		return
	fi
	# Eight processes at a time, each of which reads some files.
	sed 's/^[^ ]*  //' "$src.sums" | shuf |
		(cd "$mnt" && xargs -P 8 -n 5 sha256sum) |
		sort >"$work/got.sums"
	sort "$src.sums" | cmp - "$work/got.sums" ||
		fail "epoch $number: wrong bytes"
}

# count_epoch WAY: read an epoch. Sets $resident to the bytes that were resident
# before, and $gave to the bytes that the origin gave. Returns false if another
# program dropped the caches meanwhile: then readers read parts of files again,
# and the other parts of these files are staged for the next epoch.
count_epoch() {
	wait_for 20 settled || fail 'publications do not end'
	# or this epoch uses the staged bytes
	wait_for 2 has_status staging_bytes 0 || :
	staged=$(status_field staging_bytes)
	resident=$(status_field resident_bytes)
	gave=$(status_field origin_bytes)
	drop_caches
	dropped=$(drops)
	read_all "$1"
	gave=$(($(status_field origin_bytes) - gave))
	! others_dropped || return 1
	[ "$staged" -eq 0 ]
}

others_dropped() {
	[ "$(drops)" != "$dropped" ]
}

# exact: check the last epoch. A drop of the caches is counted when it has
# ended, so one that happens during the epoch may be counted after the epoch.
exact() {
	[ "$gave" -eq $((bytes - resident)) ] || ! wait_for 5 others_dropped
}

# epoch WAY: check that exactly the bytes that were not resident come from the
# origin.
epoch() {
	number=$((number + 1))
	rounds=0
	until count_epoch "$1" && exact; do
		note "epoch $number again: the caches were dropped"
		rounds=$((rounds + 1))
		[ $rounds -lt 10 ] || skip 'others drop the caches all the time'
	done
	expect "origin bytes of epoch $number by $1, $resident resident" \
		"$gave" $((bytes - resident))
}

# Pages that the kernel has kept are not read again.
epoch_without_drop() {
	number=$((number + 1))
	wait_for 20 settled || fail 'publications do not end'
	gave=$(status_field origin_bytes)
	dropped=$(drops)
	read_all read
	gave=$(($(status_field origin_bytes) - gave))
	others_dropped || [ "$gave" -le $((bytes - resident)) ] ||
		fail "$gave bytes without a drop, $resident resident"
	note "$gave bytes without a drop of $((bytes - resident)) with one"
}

# epochs PERCENT TIERS WAY ...: read an epoch in each way; the first one fills
# the cache.
epochs() {
	capacity=$((bytes * $1 / 100))
	tiers=$2
	shift 2
	number=0
	rm -rf "$work/fast" "$work/slow"
	if [ "$tiers" -eq 1 ]; then
		start_mount "$src" "$mnt" --cache "$work/slow:$capacity"
	else
		start_mount "$src" "$mnt" \
			--cache "$work/fast:$((capacity / 4))" \
			--cache "$work/slow:$((capacity * 3 / 4))"
	fi
	watch_budgets
	for way; do
		epoch "$way"
	done
	epoch_without_drop
	wait_for 20 settled || fail 'publications do not end'
	unwatch_budgets
	resident=$(status_field resident_bytes)
	[ "$resident" -gt $((capacity * 9 / 10)) ] ||
		fail "only $resident resident of $capacity"
	for counter in evictions invalidated checksum_errors entries_lost \
		tier_errors origin_retries stale_reads origin_failures; do
		expect $counter "$(status_field $counter)" 0
	done
	note "$number epochs of $bytes bytes ($*), $tiers tier(s) of" \
		"$capacity: $resident resident, each epoch exact"
	stop_mount
	"$refrain" verify "$work/slow" >/dev/null || fail 'verify finds damage'
}

make_tree "$src" 1 320 "${EPOCH_FILE_BYTES:-3000000}"
bytes=$(tree_bytes "$src")
"$reader" "$src" --make-sums "$work/sums" >/dev/null

epochs 35 1 read read programs pread4k
epochs 50 2 pread4k mmap read direct
epochs 65 1 mmap direct programs
epochs 50 1 direct direct read

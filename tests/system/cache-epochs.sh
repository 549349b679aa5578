#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The bytes that an epoch reads from the origin: the dataset less the part
# resident when it begins, in every epoch, however it is read, with one tier
# and with two. Nothing is evicted, no budget is passed at any time that
# somebody looks, and every byte is right. EPOCH_FILE_BYTES: the largest file.
set -eu
name=epochs
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum shuf

samples=$work/samples
sampler=

# watch_budgets: until `unwatch_budgets`, several connections ask again and
# again what is charged and reserved; and the entries are added up, too.
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

# Nothing is on its way, and the publications are through.
settled() {
	seen=$(status_field resident_bytes) &&
		[ "$(status_field inflight)" -eq 0 ] &&
		[ "$(status_field resident_bytes)" -eq "$seen" ]
}

# read_all WAY: everything once, with the right bytes.
read_all() {
	if [ "$1" != programs ]; then
		"$reader" "$mnt" --threads 8 --first-epoch "$number" \
			--io "$1" --sums "$work/sums" >/dev/null ||
			fail "epoch $number by $1: wrong bytes"
		return
	fi
	# Eight at a time, each of them some files.
	sed 's/^[^ ]*  //' "$src.sums" | shuf |
		(cd "$mnt" && xargs -P 8 -n 5 sha256sum) |
		sort >"$work/got.sums"
	sort "$src.sums" | cmp - "$work/got.sums" ||
		fail "epoch $number: wrong bytes"
}

# count_epoch WAY: sets what was $resident before and what the origin $gave;
# false if others dropped the caches meanwhile. Readers then came back for parts
# of files, and the rest of those is staged: the next epoch uses that up.
count_epoch() {
	wait_for 20 settled || fail 'publications do not end'
	wait_for 2 has_status staging_bytes 0 || : # or this epoch does it
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

# A drop of the caches is counted when it has ended: one that goes on while the
# epoch does may be counted after it.
exact() {
	[ "$gave" -eq $((bytes - resident)) ] || ! wait_for 5 others_dropped
}

# epoch WAY: what was not resident comes from the origin, no more and no less.
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

# Pages that the kernel still has are not read again.
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

# epochs PERCENT TIERS WAY ...: an epoch in each way; the first fills.
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

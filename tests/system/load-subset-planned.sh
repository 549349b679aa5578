#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A cache that holds a subset and not the dataset, and another program that
# reads all other files while the first epoch runs. With --admit-planned the
# subset gets the cache, so that later epochs read nothing from the origin.
set -eu
name=load-subset-planned
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

"$refrain" load "$src/train" --batch 16 --subset 100 --list-examples |
	sort >"$work/subset"
find "$src/train" -name '*.jpg' | sort >"$work/all"
comm -13 "$work/subset" "$work/all" | sed "s|^$src|$mnt|" >"$work/others"
last=$(tail -n 1 "$work/others")
sed -i '$d' "$work/others"
expect 'other files' "$(wc -l <"$work/others")" 199
subset_bytes=$(tr '\n' '\0' <"$work/subset" | xargs -0 cat | wc -c)
# The cache has room for the subset, and for less than the dataset.
room=$((bytes / 2 / 1024))K

# train OPTION ...: three epochs in the background.
train() {
	"$refrain" load "$mnt/train" --epochs 3 --subset 100 --batch 16 \
		--size 32 --seed 5 --step-ms 20 --json "$@" >"$work/json" &
	loader=$!
}

read_others() {
	tr '\n' '\0' <"$work/others" | xargs -0 cat |
		wc -c >"$work/others_bytes"
}

start_mount "$src" "$mnt" --cache "$work/tier:$room"
scan_through
train --admit-planned
wait_for 10 has_status plans_admitting 1 || fail 'there is no plan'
# The loader waits while the others are read, so that this is the first epoch.
kill -STOP $loader
read_others
kill -CONT $loader
wait $loader || fail 'the loader has failed'
others_bytes=$(cat "$work/others_bytes")
# A file that was kept out counts again when another reader fetches it.
[ "$(status_field not_planned)" -ge 199 ] ||
	fail "only $(status_field not_planned) files were kept out"
wait_for 10 has_status entries 100 || fail "$(status_field entries) entries"
expect 'bytes from the origin in three epochs, and of the other reader' \
	"$(status_field origin_bytes)" $((subset_bytes + others_bytes))
want=$(value stream_hash)
expect 'plans that admit planned files only' "$(status_field plans_admitting)" 0
note 'planned files alone are admitted'

# The plan has ended, so that others get into the room that is left.
cat "$last" >/dev/null
wait_for 10 has_status entries 101 || fail 'the mount still admits nothing'
stop_mount
note 'this ends with the plan'

# Without the option, the others fill the cache. The order is the same.
rm -rf "$work/tier"
start_mount "$src" "$mnt" --cache "$work/tier:$room"
scan_through
read_others
train
wait $loader || fail 'the loader has failed'
[ "$(status_field origin_bytes)" -gt $((subset_bytes + others_bytes)) ] ||
	fail "$(status_field origin_bytes) bytes from the origin"
expect 'hash of the order' "$(value stream_hash)" "$want"
note 'without it, later epochs read from the origin'

# The same for trainers that send a plan by a command.
stop_mount
rm -rf "$work/tier"
start_mount "$src" "$mnt" --cache "$work/tier:$room"
scan_through
sed "s|^$src/||" "$work/subset" >"$work/order"
"$refrain" plan "$mnt" --admit-planned --json <"$work/order" >"$work/out" &
plan=$!
wait_for 10 has_status plans_admitting 1 || fail 'there is no plan'
cat "$last" >/dev/null
expect 'other files that were kept out' "$(status_field not_planned)" 1
kill $plan
wait $plan || :

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Loaders and plans outlive the daemon of a mount that is held (P1): it is
# killed and upgraded while they run. Samples and stream are those of the bare
# directory, the plans are there again, and what is in the tier is read directly
# even while there is no daemon.
set -eu
name=survive-loaders
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=300
"$refrain" make-dataset --classes 3 --images $images --size 96x72 \
	"$work/data" >/dev/null
mv "$work/data" "$src/train"
bytes=$(tree_bytes "$src/train")

# held_mount TIER OPTION ...: in the background, which has a holder.
held_mount() {
	tier=$1
	shift
	"$refrain" mount "$src" "$mnt" --cache "$work/$tier" \
		--log-file "$work/log" "$@" || fail 'cannot mount'
	scan_through
	holder=$(awk '/^PPid:/ { print $2 }' "/proc/$(status_field pid)/status")
}

ends_with_mount() {
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	wait_for 10 has_ended "$holder" || fail 'the holder outlives the mount'
}

# load OUT DATASET OPTION ...: the JSON of a run in OUT.
load() {
	out=$1
	shift
	timeout $((120 * patience)) "$refrain" load "$@" --batch 16 \
		--size 32 --seed 5 --json >"$out" 2>"$out.err"
}

# value NAME FILE
value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2"
}

# same WHAT GOT WANT: the samples and their order.
same() {
	for hash in pixel_hash stream_hash; do
		expect "$hash, $1" "$(value $hash "$2")" "$(value $hash "$3")"
	done
	expect "errors, $1" "$(value errors "$2")" 0
}

daemon_of() {
	# shellcheck disable=SC2013 # one word
	for p in $(cat "/proc/$holder/task/$holder/children"); do
		echo "$p"
	done
}

# The daemon has ended, and another one serves.
killed() {
	was=$(daemon_of)
	kill -9 "$was"
	wait_for 20 has_ended "$was" || fail 'the daemon does not end'
}

upgraded() {
	"$refrain" upgrade "$mnt" --log-level "$1" || fail 'cannot upgrade'
}

has_plans() {
	has_status plans "$1" && has_status plans_again "$1"
}

# plans_return HOW N: N plans are there again within a second.
plans_return() {
	wait_for 1 has_plans "$2" ||
		fail "$1: $(status_field plans) plans, of $2"
}

load "$work/want" "$src/train" --epochs 30 --echo 2 || fail 'the directory'
load "$work/want.share" "$src/train" --epochs 30 --echo 2 --rank 1 --world 2 \
	--equal-ranks || fail 'the directory, rank 1'

# -- Plans come back ----------------------------------------------------------
# Only a half fits, so each epoch has misses, and the plans never end: that of a
# loader, and that of a share's host.
held_mount "half:$((bytes / 2 / 1024))K"
load "$work/alone" "$mnt/train" --epochs 30 --echo 2 --step-ms 4 &
jobs=$!
for job in 1 2; do
	load "$work/share.$job" "$mnt/train" --epochs 30 --echo 2 --rank 1 \
		--world 2 --equal-ranks --step-ms 4 --share s \
		--share-jobs 2 &
	jobs="$jobs $!"
done
wait_for 20 has_status plans 2 || fail 'there are no plans'
times=0
for how in killed killed 'upgraded info' killed 'upgraded error'; do
	$how
	plans_return "$how" 2
	times=$((times + 1))
done
expect 'recoveries' "$(status_field recoveries)" $times
for job in $jobs; do
	wait "$job" || fail "a job failed: $(cat "$work"/*.err)"
done
same 'alone' "$work/alone" "$work/want"
for job in 1 2; do
	same "share, job $job" "$work/share.$job" "$work/want.share"
done
expect 'returns' "$(value mount_returns "$work/alone")" $times
expect 'returns, share' $(($(value mount_returns "$work/share.1") + \
	$(value mount_returns "$work/share.2"))) $times
[ "$(value direct_hits "$work/alone")" -gt 0 ] || fail 'no direct hits'
wait_for 10 has_status plans 0 || fail 'a plan is left'
note "$times daemons, $(value direct_hits "$work/alone") direct hits"
ends_with_mount

# -- The command --------------------------------------------------------------
# From a file, and from a pipe, which cannot be read again.
held_mount small:4K
find "$src/train" -name '*.jpg' -printf 'train/%P\n' | sort >"$work/order"
"$refrain" plan --json "$mnt" <"$work/order" >"$work/plan.1" &
jobs=$!
# shellcheck disable=SC2002 # a pipe is what is meant
cat "$work/order" | "$refrain" plan --json "$mnt" >"$work/plan.2" &
jobs="$jobs $!"
wait_for 20 has_status planned_positions $((2 * images)) ||
	fail "$(status_field planned_positions) positions"
# read_files FIRST LAST: of the order.
read_files() {
	sed -n "$1,$2p" "$work/order" | while read -r f; do
		cmp "$mnt/$f" "$src/$f" || fail "wrong bytes of $f"
	done
}
read_files 1 100
wait_for 20 has_status planned_positions $((2 * (images - 100))) ||
	fail "$(status_field planned_positions) positions"

all_planned() {
	[ "$(status_field planned_positions)" -ge $((2 * (images - 100))) ]
}
killed
wait_for 20 has_plans 2 || fail 'a plan does not come back'
wait_for 20 all_planned || fail "$(status_field planned_positions) positions"
read_files 101 $images
for job in $jobs; do
	wait "$job" || fail 'refrain plan failed'
done
for i in 1 2; do
	expect "files, plan $i" "$(value positions "$work/plan.$i")" $images
done
ends_with_mount

# -- Direct hits without a daemon ---------------------------------------------
held_mount all:64M
"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
load "$work/warm" "$mnt/train" --epochs 30 --echo 2 --step-ms 20 \
	--step-log "$work/steps" &
job=$!
# steps N: that many have been.
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

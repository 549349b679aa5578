#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The daemon of a mount that is held is killed and upgraded while a loader and
# the host of a share follow plans: the plans are there again within a second,
# and samples and stream are those of the bare directory.
set -eu
name=survive-plans
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/survive-loaders-lib.sh
. "${srcdir:-.}/tests/system/survive-loaders-lib.sh"

load "$work/want" "$src/train" --epochs 30 --echo 2 || fail 'the directory'
load "$work/want.share" "$src/train" --epochs 30 --echo 2 --rank 1 --world 2 \
	--equal-ranks || fail 'the directory, rank 1'

# The tier has room for half, so each epoch has misses, and the plans of the
# loader and of the share's host never end.
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

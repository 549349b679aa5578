#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A loader on a mount reads cached files in the tier, without the mount, and
# other files are fetched in the order of the run. The samples equal those of
# the bare directory, with a cold cache, a warm one, and one with room for half
# of the files.
set -eu
name=load-direct
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

bare

# -- Cold: fetched in the order of the run
start_mount "$src" "$mnt" --cache "$work/tier:64M"
scan_through
same cold --step-ms 10 --reads-ahead 8 --batches-ahead 2
expect 'origin bytes, cold' "$(status_field origin_bytes)" "$bytes"
# Files that were fetched ahead are read through the mount, or opened in the
# tier.
[ "$(status_field prefetch_issued)" -gt 0 ] || fail 'the plan was of no use'
expect 'wasted' "$(status_field prefetch_wasted)" 0
wait_for 10 has_status plans 0 || fail 'a plan is left'
note "cold: $(status_field prefetch_issued) fetched ahead," \
	"$(value direct_hits) of $((2 * images)) direct"

# -- Warm: the mount is not asked
"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
bytes_before=$(status_field origin_bytes)
for threads in 1 4; do
	all_direct "warm, $threads threads" --threads $threads
done
"$refrain" index "$mnt/train" >"$work/list"
dataset=$work/list
all_direct 'a list' --root "$mnt/train"
dataset=$mnt/train
expect 'origin bytes, warm' "$(status_field origin_bytes)" "$bytes_before"
same 'without help' --no-mount-help
expect 'direct hits without help' "$(value direct_hits)" 0
wait_for 10 has_status plans 0 || fail 'a plan is left'
note 'warm: all direct'
stop_mount

# -- Cold, and only half of it fits
half_mount
same 'half of it'
expect 'wasted, half' "$(status_field prefetch_wasted)" 0
note "half: $(value direct_hits) of $((2 * images)) direct"
stop_mount

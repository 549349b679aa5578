#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The daemon of a mount that is held is killed while `refrain plan` waits: the
# next daemon gets the order again, from a file and from a pipe, which cannot be
# read again.
set -eu
name=survive-plan-command
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/survive-loaders-lib.sh
. "${srcdir:-.}/tests/system/survive-loaders-lib.sh"

held_mount small:4K
find "$src/train" -name '*.jpg' -printf 'train/%P\n' | sort >"$work/order"
"$refrain" plan --json "$mnt" <"$work/order" >"$work/plan.1" &
jobs=$!
# shellcheck disable=SC2002 # it must be a pipe
cat "$work/order" | "$refrain" plan --json "$mnt" >"$work/plan.2" &
jobs="$jobs $!"
wait_for 20 has_status planned_positions $((2 * images)) ||
	fail "$(status_field planned_positions) positions"
# read_files FIRST LAST: read these files of the order.
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

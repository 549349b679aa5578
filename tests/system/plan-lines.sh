#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Lines of `refrain plan` that name no file: an order with only such lines is an
# error, one such line among others is reported while the plan waits for its
# readers, and an order with very many of them is accepted. REFRAIN_PLAN_LINES
# is their number.
set -eu
name=plan-lines
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/plan-lib.sh
. "$(dirname "$0")/plan-lib.sh"

lines=${REFRAIN_PLAN_LINES:-200000}
half_fits

printf 'nowhere\n' >"$work/wrong"
if "$refrain" plan "$mnt" <"$work/wrong" >"$work/out" 2>"$work/err"; then
	fail 'an order of nothing is no success'
fi
grep -q 'relative to the mount.s root' "$work/err" || fail "$(cat "$work/err")"
got=0
"$refrain" plan "$mnt" --echo none </dev/null 2>"$work/err" || got=$?
expect 'a wrong echo factor' $got 2

# The line is reported while the plan still waits for its readers.
order 13 >"$work/both"
echo nowhere >>"$work/both"
"$refrain" plan "$mnt" <"$work/both" >"$work/out" &
planning=$!
names_the_line() {
	grep -q '^1 line was left out: .* the first is nowhere' "$work/out"
}
wait_for 60 names_the_line || fail "not reported: $(cat "$work/out")"
drop_plan

begun=$(date +%s%N)
before=$(status_field memory_rss_bytes)
awk -v n="$lines" 'BEGIN { for (i = 0; i < n; i++)
	printf "train/n%05d/none_%08d.JPEG\n", i / 1300, i }' >"$work/many"
cat "$work/names" >>"$work/many"
begin "$work/many" --epoch 9
lined_up() { [ "$(status_field planned_positions)" -gt 0 ]; }
wait_for 600 lined_up || fail 'the names at the end are not there'
took=$((($(date +%s%N) - begun) / 1000000))
note "$lines unknown lines in $took ms, $(($(status_field \
	memory_rss_bytes) - before)) bytes of memory"
drop_plan
stop_mount

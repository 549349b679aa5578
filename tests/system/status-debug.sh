#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain status --debug` shows a fill and a request that hang at the origin,
# their ages and the readers that wait, and a plan. They are not shown after
# their end.
set -eu
name='status-debug'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3
# shellcheck source=tests/system/status-debug-lib.sh
. "$(dirname "$0")/status-debug-lib.sh"

wait_for 10 is "d['phases']['publishing'] == 0" || fail 'b is not published'
is "d['fills'] == 0 and d['requests'] == 0 and d['oldest_fills'] == [] and \
	d['readers_wait'] == 0 and d['plans'] == []" ||
	fail "not idle: $(debug d)"

"$refrain" fault "$mnt" stall=1,match=hang/
cat "$mnt/hang/a" >"$work/a.1" &
first=$!
ends_with_test $first
cat "$mnt/hang/a" >"$work/a.2" &
second=$!
ends_with_test $second
wait_for 10 is "len(f) == 1 and f[0]['waiters'] >= 1 and len(r) == 1" ||
	fail "no fill that waits: $(debug d)"
is "f[0]['phase'] == 'fetching' and f[0]['priority'] == 'demand' and \
	f[0]['bytes'] == 200000 and f[0]['pages'] == 49 and \
	f[0]['inflight'] == 49 and f[0]['present'] == 0 and f[0]['admitted']" ||
	fail "the fill: $(debug f)"
is "r[0]['to'] == 'origin' and r[0]['bytes'] == 200000 and \
	r[0]['got_bytes'] == 0 and d['phases']['fetching'] == 1 and \
	d['readers_wait'] >= 1" || fail "the request: $(debug r)"

# The age of the fill, and the wait of its reader, grow.
age=$(debug "f[0]['age_ms']")
wait_for 10 is "f[0]['age_ms'] >= $age + 300 and \
	r[0]['quiet_ms'] >= 300 and 300 <= f[0]['waits_ms'] <= \
	f[0]['age_ms']" || fail "the ages: $(debug '(f, r)')"

"$refrain" status --debug "$mnt" >"$work/screen"
for line in 'fetching, [0-9.]* s, demand: hang/a \[' \
	'readers wait, the first for [0-9.]* s for ' \
	'origin, [0-9.]* s, no bytes for [0-9.]* s'; do
	grep -q "$line" "$work/screen" ||
		fail "no '$line' on the screen: $(cat "$work/screen")"
done

# A plan exists as long as its command runs.
printf 'b\nhang/a\n' >"$work/names"
"$refrain" plan "$mnt" <"$work/names" >"$work/plan" 2>&1 &
plan=$!
ends_with_test $plan
wait_for 10 is "len(d['plans']) == 1 and d['plans'][0]['positions'] == 2" ||
	fail "no plan: $(debug "d['plans']")"

"$refrain" fault "$mnt" ''
wait $first || fail 'the first reader'
wait $second || fail 'the second reader'
cmp "$work/a.1" "$src/hang/a" && cmp "$work/a.2" "$src/hang/a"
wait_for 10 is "d['fills'] == 0 and d['requests'] == 0 and \
	d['readers_wait'] == 0" || fail "not idle again: $(debug d)"

expect 'exit status with --watch' \
	"$("$refrain" status --debug --watch "$mnt" >"$work/out" 2>&1 ||
		echo $?)" 2

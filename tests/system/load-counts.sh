#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The numbers of examples that `refrain load` reads, decodes and serves can be
# computed from its options, for each factor and point of echoes, with the
# smallest window, and with a last batch that is dropped.
set -eu
name=load-counts
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

# servings E POINT: print the number of servings of a run whose last batch of
# fresh examples is short.
servings() {
	awk -v e="$1" -v point="$2" -v f=$fresh -v b=$batch 'BEGIN {
		if (point != "batch") {
			print int(f * e)
			exit
		}
		u = int((f + b - 1) / b)
		before = int((u - 1) * e)
		print before * b + (int(u * e) - before) * (f - (u - 1) * b)
	}'
}

plain=
for point in before after batch; do
	for e in 1 1.5 2 2.5 4 8; do
		about="echo $e $point"
		want=$(servings $e $point)
		load --echo $e --echo-point $point
		is epochs $epochs
		is fresh $fresh
		is served "$want"
		is files_read $fresh
		is decodes $fresh
		is read_items $fresh
		is redecodes 0
		is in_batch_duplicates 0
		is errors 0
		is examples $images
		is classes 3
		[ $point = batch ] || is steps $(((want + batch - 1) / batch))
		[ $e != 1 ] || [ -n "$plain" ] || plain=$(hashes)
		# Without echoes, the point of echoes makes no difference.
		[ $e != 1 ] || expect "$about" "$(hashes)" "$plain"
	done
done
note 'counts are right'

# The shortest window that is accepted: the run has a ramp, a middle and a
# drain.
about='least window'
if "$refrain" load "$data" --batch $batch --echo 4 --window 100 \
	>/dev/null 2>"$work/err"; then
	fail 'a window that is too small was taken'
fi
grep -q 112 "$work/err" || fail "it does not say: 112: $(cat "$work/err")"
load --echo 4 --window 112
is served $((4 * fresh))
is decodes $fresh
is in_batch_duplicates 0
load --echo 4 --window 20 --allow-duplicates
[ "$(value in_batch_duplicates)" -gt 0 ] || fail 'no duplicates were counted'
load --drop-last --steps 7
is steps 7
load --drop-last
is steps $((fresh / batch))
is dropped_examples $((fresh % batch))
note 'the least window, and the last batch'

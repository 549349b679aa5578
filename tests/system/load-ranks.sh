#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each example is fresh once an epoch, on one rank and on several, whose numbers
# of steps differ by at most one. Another number of ranks can continue from a
# state.
set -eu
name=load-ranks
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

load --echo 2 --trace "$work/all" --step-log "$work/steps"
expect 'lines of the step log' "$(wc -l <"$work/steps")" "$(value steps)"
expect 'fresh and ends of the step log' "$(awk '
	$2 < t || $3 > 60e6 { print "wrong", $0 }
	$6 != ($5 ? ended++ : "-") { print "wrong epoch", $0 }
	{ t = $2; fresh += $4; ends += $5 }
	END { print fresh, ends }' "$work/steps")" "$fresh $epochs"
covers $epochs "$work/all"
awk '$3 == 0' "$work/all" | head -n $images >"$work/epoch"
covers 1 "$work/epoch"
expect 'lines of the trace' "$(wc -l <"$work/all")" $((2 * fresh))
for world in 2 3 7; do
	most=0 least=1000000 rank=0
	rm -f "$work"/rank.*
	while [ $rank -lt $world ]; do
		load --echo 1.5 --world $world --rank $rank \
			--trace "$work/rank.$rank"
		steps=$(value steps)
		[ "$steps" -le "$most" ] || most=$steps
		[ "$steps" -ge "$least" ] || least=$steps
		rank=$((rank + 1))
	done
	covers $epochs "$work"/rank.*
	[ $((most - least)) -le 1 ] ||
		fail "world $world: between $least and $most steps"
done
note 'ranks share the examples'

# Another number of ranks serves the remaining examples, and none twice.
for steps in 7 20; do
	rm -f "$work/state" "$work/pieces"
	load --echo 2 --state "$work/state" --trace "$work/pieces" \
		--steps $steps
	lines=$(wc -l <"$work/pieces")
	cp "$work/pieces" "$work/all"
	for rank in 0 1 2; do
		cp "$work/state" "$work/state.$rank"
		cp "$work/pieces" "$work/pieces.$rank"
		load --echo 2 --world 3 --rank $rank \
			--state "$work/state.$rank" \
			--trace "$work/pieces.$rank"
		[ "$(value dropped_echoes)" -gt 0 ] ||
			fail 'no echoes were owed at the change'
		tail -n +$((lines + 1)) "$work/pieces.$rank" >>"$work/all"
	done
	covers $epochs "$work/all"
done
note 'other ranks go on with what nobody had'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A run that is stopped, or killed at any moment, continues from its state, and
# a state of another run is refused. REFRAIN_SEED repeats the moments of the
# kills.
set -eu
name=load-resumed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires timeout
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

# stops E STEP ...: check that a run in pieces of these numbers of steps equals
# a run in one piece.
stops() {
	e=$1
	shift
	rm -f "$work/state" "$work/pieces"
	load --echo "$e" --trace "$work/whole"
	for steps; do
		load --echo "$e" --state "$work/state" --trace "$work/pieces" \
			--steps "$steps" --threads $((steps % 3 + 1))
	done
	cmp "$work/whole" "$work/pieces" || fail "stopped at $*, echo $e"
}
stops 2 1 9 5 11 1 1000 1000
stops 2.5 40 1 1000
stops 1 19 1000
# The run stops before its last step, and after it.
stops 1 37 1 1 1
about='after the end'
is served 0

# The run is killed at random moments until it is finished.
REFRAIN_SEED=${REFRAIN_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
load --echo 1.5 --trace "$work/whole"
rm -f "$work/state" "$work/pieces"
: >"$work/before"
kills=0
most=10
status=1
while [ $status -ne 0 ]; do
	kills=$((kills + 1))
	[ $kills -lt 200 ] || fail "not through after $kills kills"
	after=$(awk -v s="$REFRAIN_SEED" -v n=$kills -v most=$most \
		'BEGIN { srand(s + n); print 0.03 + rand() * most / 100 }')
	status=0
	timeout -s KILL "$after" "$refrain" load "$data" --batch $batch \
		--epochs $epochs --size 32 --seed 5 --echo 1.5 --step-ms 5 \
		--threads 2 --state "$work/state" --trace "$work/pieces" \
		>"$work/out" 2>&1 || status=$?
	[ $status -eq 0 ] || [ $status -eq 137 ] || {
		cat "$work/out"
		fail "exit $status, seed $REFRAIN_SEED"
	}
	# A slower build gets more time.
	if [ -f "$work/state" ] && ! cmp -s "$work/state" "$work/before"; then
		cp "$work/state" "$work/before"
	else
		most=$((most * 2))
	fi
done
cmp "$work/whole" "$work/pieces" || fail "killed, seed $REFRAIN_SEED"
note "killed $((kills - 1)) times, and the stream is whole"

# A state of another run, or a damaged one.
rm -f "$work/state" "$work/pieces"
load --echo 2 --state "$work/state" --trace "$work/pieces" --steps 20
refused seed --echo 2 --state "$work/state" --seed 6
refused echo --echo 3 --state "$work/state"
refused shorter --echo 2 --state "$work/state" --trace "$work/new"
printf x >>"$work/state"
refused damaged --echo 2 --state "$work/state"
note 'it goes on where it was'

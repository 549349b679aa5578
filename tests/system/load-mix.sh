#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Parts of a dataset in exact proportions, in every block and over ranks, stages
# and resumed runs; epochs of any length; and one line for an impossible mix.
set -eu
name=load-mix
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

# The dataset has 100 examples in each of three classes, in order.
mix='class_000=3 class_002=1; 1: class_000=1 class_001=1'

# blocks FROM TO PART=WEIGHT ...: check that in the fresh examples FROM to TO -
# 1 of $work/fresh each block has WEIGHT examples of PART, and that each part
# serves all its examples once before it serves one again.
blocks() {
	from=$1 to=$2
	shift 2
	awk -v from="$from" -v to="$to" -v weights="$*" '
		BEGIN {
			n = split(weights, w, " ")
			for (i = 1; i <= n; i++) {
				split(w[i], p, "=")
				want[p[1]] = p[2]
				slots += p[2]
			}
		}
		NR > from && NR <= to { got[int($2 / 100)]++; count++ }
		count == slots {
			for (j = 0; j < 3; j++)
				if (got[j] + 0 != want[j] + 0) {
					print "part " j ": " got[j] + 0 \
						" of " slots " at line " NR
					exit 1
				}
			delete got
			count = 0
		}' "$work/fresh" || fail "the proportions of $*"
}

# passes: check that no example of a part is fresh for the n-th time before all
# others of the part were fresh n - 1 times.
passes() {
	awk '{
		part = int($2 / 100)
		if (seen[$2]++ > full[part]) {
			print $2 " is fresh too early, line " NR
			exit 1
		}
		if (++served[part] % 100 == 0)
			full[part]++
	}' "$work/fresh" || fail 'the passes of a part'
}

fresh_of() {
	awk '$3 == 0' "$@" >"$work/fresh"
}

about='a mix'
load --mix "$mix" --epoch-examples 250 --trace "$work/all" \
	--step-log "$work/steps"
fresh_of "$work/all"
is fresh 500
is epochs 2
blocks 0 250 0=3 2=1
blocks 250 500 0=1 1=1
passes
want=$(hashes)
expect 'ends of epochs' "$(awk '$5 { print $6 }' "$work/steps" | xargs)" '0 1'

about='echoes keep the proportions'
load --mix "$mix" --epoch-examples 250 --echo 2 --trace "$work/echoes"
awk '$3 == 0 { print $2 }' "$work/all" >"$work/a"
awk '$3 == 0 { print $2 }' "$work/echoes" >"$work/b"
cmp -s "$work/a" "$work/b" || fail "$about"

# Two ranks together serve the same examples as one rank, in the same order.
for rank in 0 1; do
	load --mix "$mix" --epoch-examples 250 --world 2 --rank $rank \
		--trace "$work/rank.$rank"
done
paste -d '\n' "$work/rank.0" "$work/rank.1" >"$work/both"
cut -f 2 "$work/all" >"$work/a"
cut -f 2 "$work/both" >"$work/b"
cmp -s "$work/a" "$work/b" || fail 'two ranks do not share the mix'
note 'proportions and passes, on one rank and on two'

# A run that is resumed at any step of two blocks, and across the stage, is the
# same.
for steps in 1 2 14 15 16 17; do
	rm -f "$work/state" "$work/pieces"
	load --mix "$mix" --epoch-examples 250 --state "$work/state" \
		--trace "$work/pieces" --steps $steps
	load --mix "$mix" --epoch-examples 250 --state "$work/state" \
		--trace "$work/pieces"
	cmp -s "$work/all" "$work/pieces" || fail "resumed after $steps steps"
done
load --mix "$mix" --epoch-examples 250 --state "$work/state2" --steps 9
if "$refrain" load "$data" --batch $batch --epochs $epochs --size 32 \
	--seed 5 --state "$work/state2" --epoch-examples 250 \
	--mix 'class_000=1' >"$work/out" 2>&1; then
	fail 'another mix has resumed the run'
fi
grep -q 'mix differs' "$work/out" || fail "$(cat "$work/out")"
note 'resumed runs'

# The stages of a mix begin at epochs, so the length of epochs must not change.
load --mix "$mix" --epoch-examples 100 --state "$work/state3" --steps 15
if "$refrain" load "$data" --batch $batch --epochs 10 --size 32 --seed 5 \
	--state "$work/state3" --epoch-examples 50 --mix "$mix" \
	>"$work/out" 2>&1; then
	fail 'stages have begun elsewhere in the resumed run'
fi
grep -q 'epoch-examples for the stages' "$work/out" ||
	fail "$(cat "$work/out")"

# A damaged example is replaced by another one of its part.
cp -r "$data" "$work/bad"
for file in "$work"/bad/class_002/*0.jpg; do
	: >"$file"
done
"$refrain" load "$work/bad" --batch $batch --epochs 3 --size 32 --seed 5 \
	--mix class_002=1 --max-damage 1 --json --trace "$work/all" \
	>"$work/json" 2>&1 || fail "$(cat "$work/json")"
expect 'substitutes' "$(value substituted)" 30
expect 'samples of other parts' \
	"$(awk '$2 < 200' "$work/all" | wc -l)" 0

# Classes are balanced, whatever their sizes are.
rm "$data"/class_001/*[1-9].jpg
epochs=3
load --mix 'classes=1' --epoch-examples 300 --trace "$work/all"
expect 'classes in balance' "$(awk '{
		n = $2 < 100 ? 0 : $2 < 110 ? 1 : 2; count[n]++ }
	END { print count[0], count[1], count[2] }' "$work/all")" '300 300 300'
[ "$(value files_read)" -gt 0 ] || fail 'nothing was read'
note 'classes in balance'

# The examples of a class of a list lie anywhere; names may have blanks.
(cd "$data" && find . -name '*.jpg' | sort | awk '{
	print substr($0, 3) "\t" (NR % 3 ? "big cat" : "dog") }') >"$work/list"
epochs=2
"$refrain" load "$work/list" --root "$data" --batch $batch --epochs $epochs \
	--size 32 --epoch-examples 200 --mix '"big cat"=1 dog=4' \
	--trace "$work/all" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
expect 'examples of a class of a list' "$(awk '
	{ n[(NR - 1) - (NR - 1) % 5, $2 % 3 == 2]++; kind[$2 % 3 == 2]++ }
	END {
		for (i in n)
			if (n[i] != (substr(i, length(i)) == "1" ? 4 : 1))
				bad++
		print kind[0], kind[1], bad + 0
	}' "$work/all")" '80 320 0'
note 'classes of a list'

# An epoch may be shorter or longer than the dataset, and a pass continues into
# the next epoch.
images=210
about='epochs of other lengths'
for v in 70 100 420; do
	epochs=$((840 / v))
	[ $((840 % v)) -eq 0 ] || epochs=$((840 / v + 1))
	load --epoch-examples $v --trace "$work/all"
	is fresh $((epochs * v))
	is epochs $epochs
	fresh_of "$work/all"
	head -n 840 "$work/fresh" >"$work/passes"
	covers 4 "$work/passes"
	cut -f 2 "$work/passes" >"$work/order.$v"
	cmp -s "$work/order.70" "$work/order.$v" ||
		fail "the order of the stream depends on epoch_examples"
done
note 'epochs of other lengths'

refused "no example belongs to 'cats'" --mix 'cats=1'
refused "mix, at byte 13.*NAME=WEIGHT" --mix 'class_000=1 x'
refused 'add up to 1 to 4096' --mix 'class_000=0'
refused 'begins with its first epoch' --mix 'class_000=1; class_001=1'
refused 'later epoch' --mix 'class_000=1; 3: class_001=1; 3: class_002=1'
refused 'has this name already' --mix 'class_000=1 class_000/=2'
refused 'NAME=WEIGHT\|whole number' --mix 'class_000=1class_001=2'
refused 'closing quote' --mix '"class_000=1'
refused 'exclude each other' --mix 'class_000=1' --subset 10
refused 'order of its own' --mix 'class_000=1' --in-order
refused 'order of its own' --mix 'class_000=1' --shuffle-window 8
refused 'has 210 examples' --subset 211
refused 'lies anywhere' --subset 10 --shuffle-window 8
note 'what cannot be is said in one line'

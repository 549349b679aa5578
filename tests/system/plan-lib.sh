# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of plans; sourced after lib.sh. Makes a source of $files files of
# $size bytes each, whose names are in $work/names.
here=$(cd "$(dirname "$0")" && pwd)
tools=$(cd "${srcdir:-$here/../..}/tools" && pwd)
size=50000
files=400

mkdir "$src/d"
head -c $((size * files)) /dev/urandom | split -b $size -a 3 - "$src/d/f"
(cd "$src" && find d -type f) | sort >"$work/names"

# order SEED: print all files in the order of this seed.
order() {
	awk -v s="$1" 'BEGIN { srand(s) } { print rand(), $0 }' \
		"$work/names" | sort -n | cut -d ' ' -f 2
}

# train ORDER OPTION ...: read an epoch; $seconds is its time.
train() {
	python3 "$here/trainer.py" "$mnt" "$@" >"$work/trained" ||
		fail "the trainer: $(cat "$work/trained")"
	seconds=$(sed 's/.*"seconds": \([0-9.]*\).*/\1/' "$work/trained")
}

planned() {
	sed 's/[{,}]/\n/g' "$work/planned" | sed -n "s/^\"$1\"://p"
}

# begin ORDER OPTION ...: start a plan in the background; its process is
# $planning.
begin() {
	list=$1
	shift
	rm -f "$work/planned" "$work/planned.err"
	"$refrain" plan "$mnt" --json "$@" <"$list" >"$work/planned" \
		2>"$work/planned.err" &
	planning=$!
	wait_for 20 has_status plans 1 || fail "$(cat "$work/planned.err")"
}

# ended: check that the plan ends by itself, because everything was read.
ended() {
	wait_for 20 has_ended $planning || fail 'the plan does not end'
	wait $planning || fail "the plan failed: $(cat "$work/planned.err")"
	no_plan
}

# no_plan: check that no plan is left, and no memory of one.
no_plan() {
	wait_for 10 has_status plans 0 || fail 'a plan is left'
	wait_for 10 has_status planned_bytes 0 ||
		fail 'memory of a plan is left'
}

# drop_plan: end the plan that `begin` has started.
drop_plan() {
	kill $planning
	wait $planning || :
	no_plan
}

# count, counted COUNTER: remember the counters; print the growth of one since
# then.
count() {
	for c in origin_bytes prefetch_wasted staging_dropped \
		prefetch_carried_bytes reread_bytes; do
		eval "had_$c=$(status_field $c)"
	done
}

counted() {
	eval "echo \$(($(status_field "$1") - had_$1))"
}

# half_fits: mount with a cache that has room for half of the source.
half_fits() {
	start_mount "$src" "$mnt" --cache "$work/cache:10M" --limit 256K \
		--chunk 64K --staging 2M --fault ''
	scan_through
}

throttle() {
	"$refrain" fault "$mnt" rate=8M || fail 'cannot set a fault'
}

# half_cached: the same, with that half cached, and make the source slow.
half_cached() {
	half_fits
	"$refrain" warm "$mnt" >/dev/null || fail 'cannot warm'
	throttle
}

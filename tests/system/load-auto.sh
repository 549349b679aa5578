#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load --echo auto` on a mount whose origin is slow, and then is not:
# the factor follows, with the loader's plan and without one; with a plan
# nothing is fetched in vain, and the bytes are those that were missing; the
# origin is read once for each fresh example, the log makes the same stream on
# other storage, and a run that was killed goes on with its log.
set -eu
name=load-auto
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=3000
batch=32
"$refrain" make-dataset --classes 4 --images $images --size 32x32 \
	"$work/data" >/dev/null

# slow_mount STEP_MS [TIER [OPTION ...]]: 64 reads at a time: a batch of 32
# takes about 2.6 steps.
# A new mount for each run, so that the kernel and the tier hold nothing yet.
slow_mount() {
	slow_ms=$1 tier=${2:-64K}
	[ $# -lt 2 ] || shift
	shift
	[ -z "$daemon" ] || stop_mount
	rm -rf "$work/tier"
	start_mount "$work/data" "$work/mnt" --cache "$work/tier:$tier" \
		--fault delay=$((26 * slow_ms / 5))ms "$@"
	scan_through
}

# slower WHAT STEP_MS ...: until it holds with one of these steps. Nobody can
# follow a machine whose speed changes all the time, but the longer all takes
# the less of that it has. A build that is slower itself gets longer steps.
slower() {
	what=$1
	shift
	for step_ms; do :; done # the last one
	[ "$patience" -le 1 ] ||
		set -- "$@" $((2 * step_ms)) $((4 * step_ms))
	for step_ms; do
		! $what "$step_ms" || return 0
		note "$what does not hold with steps of $step_ms ms"
	done
	cat "$work/json"
	fail "$what with no step"
}

# load DIR OPTION ...: its JSON is in $work/json.
load() {
	dir=$1
	shift
	timeout $((120 * patience)) "$refrain" load "$dir" --batch $batch \
		--size 32 --seed 5 --window 512 --threads 2 --json "$@" \
		>"$work/json" 2>"$work/err" || {
		cat "$work/err"
		fail "refrain load $*"
	}
}

value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/json"
}

is_so() {
	awk "BEGIN { exit !($1) }"
}

holds() {
	is_so "$1" || {
		cat "$work/json"
		fail "not so: $1"
	}
}

# follows_mount LEAST STEP_MS: the last factor is R, which the delay makes LEAST
# and a busy machine makes more. How much more is measured then: without echoes,
# a step takes R times as long as the trainer needs, or as long.
follows_mount() {
	e=$(value echo_factor_last)
	is_so "$e >= 0.85 * $1" || return 1
	! is_so "$e <= ($1 > 1 ? 1.15 * $1 : 1)" || return 0
	cp "$work/json" "$work/kept"
	load "$mnt" --echo auto --echo-max 1 --step-ms "$2" --epochs 2
	r=$(awk -v wait="$(value trainer_wait_ns)" \
		-v busy="$(value trainer_busy_ns)" \
		'BEGIN { printf "%.3f", 1 + wait / busy }')
	mv "$work/kept" "$work/json"
	note "steps of $2 ms: R is $r, e $e"
	is_so "$r > 1.02 && $e <= 1.15 * $r"
}

hashes() {
	echo "$(value stream_hash) $(value pixel_hash)"
}

# -- It follows ---------------------------------------------------------------
follows() {
	slow_mount "$1"
	before=$(status_field origin_reads)
	rm -f "$work/log"
	# shellcheck disable=SC2086 # none, or one option
	load "$mnt" --echo auto --echo-log "$work/log" --step-ms "$1" $help
	origin=$(($(status_field origin_reads) - before))
	expect 'fresh' "$(value fresh)" $images
	expect 'decodes' "$(value decodes)" $images
	expect 'files read' "$(value files_read)" $images
	expect 'reads of the origin' "$origin" $images
	expect 'wasted' "$(status_field prefetch_wasted)" 0
	[ -z "$help" ] || expect 'fetched ahead without help' \
		"$(status_field prefetch_issued)" 0
	[ -n "$help" ] || [ "$(status_field prefetch_issued)" -gt 0 ] ||
		fail 'there was no plan'
	expect 'lines of the log' "$(wc -l <"$work/log")" \
		"$(value echo_changes)"
	r=$(value r)
	e=$(value echo_factor_last)
	is_so "$e <= 4 && $e >= 0.85 * ($r > 4 ? 4 : $r)" &&
		is_so "$e <= 1.15 * ($r > 1 ? $r : 1)" &&
		is_so "$e > 1 && $(value served) > 1.5 * $images"
}
help=--no-mount-help
slower follows 5 10 20 40
note "by reads: r $r, e $e, stalled $(value stall_pct) %"
help=
slower follows 5 10 20 40
followed=$(hashes)
note "r $r, e $e, stalled $(value stall_pct) %"

load "$work/data" --echo auto --echo-replay "$work/log" --threads 1
expect 'replayed' "$(hashes)" "$followed"
expect 'replayed changes' "$(value echo_changes)" "$(wc -l <"$work/log")"
expect 'decodes of a replay' "$(value decodes)" $images

# Half of the dataset is cached, which halves R: 64 reads at a time make a
# batch's 16 misses in 1.3 steps if the delay is this.
half_cached() {
	slow_mount "$1" "$((images * 2))K" --limit 64K --chunk 64K \
		--pages 64K --staging 1M
	"$refrain" fault "$mnt" delay=$((8 * $1))ms || fail 'cannot set a fault'
	rm -f "$work/log"
	load "$mnt" --echo auto --echo-log "$work/log" --step-ms "$1" \
		--epochs 3
	expect 'wasted' "$(status_field prefetch_wasted)" 0
	# What was cached before anybody read it came, and was a hit as well.
	# The kernel may drop pages of its own accord, and ask for them again.
	came=$(($(status_field origin_bytes) - $(status_field reread_bytes) +
		$(status_field prefetch_carried_bytes) +
		$(status_field hit_bytes) + $(status_field direct_hit_bytes) -
		$(status_field admitted_unread_bytes)))
	[ $came -eq "$(value bytes_read)" ] || {
		note "$came bytes came or were cached, $(value bytes_read) read"
		return 1
	}
	follows_mount 2 "$1"
}
slower half_cached 5 10 20 40
note "half is cached: e $e, stalled $(value stall_pct) %"

stays_one() {
	rm -f "$work/none"
	load "$work/data" --echo auto --echo-log "$work/none" --step-ms "$1"
	is_so "$(value r) <= 1" && [ ! -s "$work/none" ] &&
		[ "$(value echo_factor_last)" = 1.0 ] &&
		[ "$(value served)" -eq $images ]
}
slower stays_one 4 16 64

# -- The origin becomes fast --------------------------------------------------
# With memory for a part of an epoch only, or the second one would be there
# before the origin is fast.
echoes_or_ended() {
	[ -s "$work/log" ] || ! kill -0 "$loading" 2>/dev/null
}
# A trainer whose steps take as long as the origin needs has nothing to echo.
begins_to_echo() {
	wait_for 60 echoes_or_ended || fail 'it neither echoes nor ends'
	[ ! -s "$work/log" ] || return 0
	wait "$loading" || exit 1
	return 1
}
comes_back() {
	slow_mount "$1" 64K --limit 64K --chunk 64K --pages 64K --staging 1M
	rm -f "$work/log"
	load "$mnt" --echo auto --echo-log "$work/log" --step-ms "$1" \
		--epochs 2 &
	loading=$!
	begins_to_echo || return 1
	"$refrain" fault "$mnt" delay=0ms || fail 'cannot set a fault'
	wait $loading || exit 1
	is_so "$(value echo_factor_last) < 2" && follows_mount 1 "$1" ||
		return 1
	[ "$e" != 1.0 ] ||
		[ "$(tail -n 1 "$work/log" | cut -d ' ' -f 2)" = 1/1 ]
}
slower comes_back 5 20 80

# -- It is killed and goes on -------------------------------------------------
is_killed() {
	rm -f "$work/log" "$work/state" "$work/trace"
	slow_mount "$1"
	"$refrain" load "$mnt" --batch $batch --size 32 --seed 5 --window 512 \
		--threads 2 --echo auto --echo-log "$work/log" --step-ms "$1" \
		--epochs 2 --state "$work/state" --trace "$work/trace" \
		>/dev/null 2>&1 &
	loading=$!
	begins_to_echo || return 1
	kill -9 $loading 2>/dev/null || return 1
	wait $loading 2>/dev/null || :
}
slower is_killed 5 20 60
load "$work/data" --echo auto --echo-log "$work/log" --epochs 2 \
	--state "$work/state" --trace "$work/trace"
holds "$(value echo_changes) >= 1"
expect 'lines of both logs' "$(wc -l <"$work/log")" "$(value echo_changes)"
load "$work/data" --echo auto --echo-replay "$work/log" --epochs 2 \
	--trace "$work/trace.again"
cmp "$work/trace" "$work/trace.again" ||
	fail 'the log does not make the stream of both runs'
: >"$work/log"
"$refrain" load "$work/data" --batch $batch --size 32 --seed 5 --window 512 \
	--epochs 2 --echo auto --echo-log "$work/log" --state "$work/state" \
	>/dev/null 2>"$work/err" && fail 'a log that is too short is taken'
grep -q 'fewer' "$work/err" || fail "$(cat "$work/err")"
stop_mount

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of `refrain load --echo auto`; sourced after lib.sh. Makes a dataset
# of $images small images in "$work/data".
requires fuse python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=3000
batch=32
"$refrain" make-dataset --classes 4 --images $images --size 32x32 \
	"$work/data" >/dev/null

# slow_mount STEP_MS [TIER [OPTION ...]]: mount a source with a delay: with 64
# reads at a time, a batch of 32 takes about 2.6 steps. The mount is a new one
# for each run, so that the kernel and the tier are empty.
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

# slower WHAT STEP_MS ...: call WHAT with each of these steps until it holds.
# The speed of a busy machine changes all the time, which matters less with longer
# steps. A build that is slower itself gets longer steps.
slower() {
	what=$1
	shift
	for step_ms; do :; done # take the last argument
	[ "$patience" -le 1 ] ||
		set -- "$@" $((2 * step_ms)) $((4 * step_ms))
	for step_ms; do
		! $what "$step_ms" || return 0
		note "$what does not hold with steps of $step_ms ms"
	done
	cat "$work/json"
	fail "$what with no step"
}

# load DIR OPTION ...: run `refrain load`; its JSON is in $work/json.
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

# follows_mount LEAST STEP_MS: check that the last factor is R. The delay makes
# R at least LEAST, and a busy machine makes it larger. If the factor is larger,
# R is measured: without echoes, a step takes R times the trainer's time, or
# once that if R is smaller.
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

# follows STEP_MS: check on a slow mount, with the options $help, that the
# factor follows R, that everything that is fetched is used, and that the origin
# is read once for each example.
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

echoes_or_ended() {
	[ -s "$work/log" ] || ! kill -0 "$loading" 2>/dev/null
}
# begins_to_echo: wait for the first change. Returns 1 if the run ends without
# one, because its steps take as long as the origin needs.
begins_to_echo() {
	wait_for 60 echoes_or_ended || fail 'it neither echoes nor ends'
	[ ! -s "$work/log" ] || return 0
	wait "$loading" || exit 1
	return 1
}

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
# killed_while_it_echoes: kill a run with "$work/log", "$work/state" and
# "$work/trace" after its first change of the factor.
killed_while_it_echoes() {
	slower is_killed 5 20 60
}

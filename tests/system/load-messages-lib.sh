# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of the messages of `refrain load`; sourced after lib.sh. Makes
# $data, a dataset of 90 images.
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
data=$work/data
"$refrain" make-dataset --classes 3 --images 90 --size 64x48 "$data" >/dev/null

# says TEXT OPTION...: check that a run on $data succeeds and prints TEXT.
says() {
	text=$1
	shift
	"$refrain" load "$data" --size 32 "$@" >"$work/out" 2>"$work/err" ||
		fail "load $*: $(cat "$work/err")"
	grep -q -e "$text" "$work/out" || {
		cat "$work/out"
		fail "load $*: no '$text'"
	}
}

# refused STATUS TEXT OPERAND OPTION...: check that a run ends with this status
# and text.
refused() {
	want=$1 text=$2
	shift 2
	rc=0
	"$refrain" load "$@" >"$work/out" 2>"$work/err" || rc=$?
	expect "status of load $*" $rc "$want"
	grep -q -e "$text" "$work/err" || {
		cat "$work/err"
		fail "load $*: no '$text'"
	}
}

# damage_some: copy $data to "$work/bad", where every fourth image is damaged.
damage_some() {
	cp -r "$data" "$work/bad"
	find "$work/bad" -name '*.jpg' | sort | sed -n '1~4p' |
		while read -r f; do
			echo '<html>' >"$f"
		done
}

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of commands for a mount; sourced after lib.sh. Makes a source of
# $files files, $all bytes and $all_items items.

# warmed FIELD: of the last warm --json.
warmed() {
	sed 's/[{,}]/\n/g' "$work/warmed" | sed -n "s/^\"$1\"://p"
}

# warm STATUS PATH ...
warm() {
	want=$1
	shift
	got=0
	"$refrain" warm "$mnt" --json "$@" >"$work/warmed" 2>"$work/err" ||
		got=$?
	expect "warm $*: $(cat "$work/err")" $got "$want"
}

# items DIR ...: of these, at --limit 128K and --chunk 64K.
items() {
	find "$@" -type f -size +0 -printf '%s\n' |
		awk '{ n += $1 <= 131072 ? 1 : int(($1 + 65535) / 65536) }
			END { print n + 0 }'
}

# ends STATUS TEXT WORD ...: refrain with these; TEXT is in what it prints.
ends() {
	want=$1
	text=$2
	shift 2
	got=0
	"$refrain" "$@" >"$work/out" 2>"$work/err" || got=$?
	expect "refrain $*: $(cat "$work/out" "$work/err")" $got "$want"
	grep -q -- "$text" "$work/out" "$work/err" ||
		fail "no '$text': $(cat "$work/out" "$work/err")"
	[ "$(wc -l <"$work/err")" -eq $((got > 0 && want < 3)) ] ||
		[ ! -s "$work/err" ] || fail "$(cat "$work/err")"
}

mounted() {
	start_mount "$src" "$mnt" --cache "$1" --limit 128K --chunk 64K \
		--staging 32M --fault ''
}

files=500
make_tree "$src" 61 $files 300000
all=$(tree_bytes "$src")
all_items=$(items "$src")
sums=$src.sums

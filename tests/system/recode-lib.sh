# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of `refrain recode`; sourced after lib.sh. Makes $data, a dataset
# of $images JPEGs, an empty class, and files of other kinds.

data=$work/data
images=24
"$refrain" make-dataset --classes 3 --images $images --size 160x120 "$data" \
	>/dev/null
mkdir "$data/empty"
echo text >"$data/class_000/notes.txt"
: >"$data/nothing.jpg"
printf 'GIF89a' >"$data/class_001/other.gif"
head -c 700 "$data/class_000/00000001.jpg" >"$data/class_002/cut.jpg"
others=4

# ends STATUS TEXT WORD ...: refrain recode with these; TEXT is in what it
# prints.
ends() {
	want=$1
	text=$2
	shift 2
	got=0
	"$refrain" recode "$@" >"$work/out" 2>"$work/err" || got=$?
	expect "recode $*: $(cat "$work/out" "$work/err")" $got "$want"
	grep -q -e "$text" "$work/out" "$work/err" ||
		fail "recode $*: no '$text': $(cat "$work/out" "$work/err")"
}

# report DIR NAME: a number of recode.json.
report() {
	sed -n "s/^  \"$2\": \([0-9]*\),*\$/\1/p" "$1/recode.json"
}

# names DIR: what belongs to the dataset.
names() {
	(cd "$1" && find . ! -name 'recode.*' ! -name '.refrain*' | sort)
}

# same DIR DIR: all bytes, and the times of files.
same() {
	diff -r "$1" "$2" >"$work/diff" || fail "differ: $(cat "$work/diff")"
	(cd "$1" && find . -name '*.jpg' -printf '%p %T@\n' | sort) \
		>"$work/times.1"
	(cd "$2" && find . -name '*.jpg' -printf '%p %T@\n' | sort) \
		>"$work/times.2"
	cmp "$work/times.1" "$work/times.2" || fail 'times differ'
}

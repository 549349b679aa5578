#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Invalid numbers as values of options: exit status 2 and one line that names
# the option, before anything else is done. Valid numbers fail later, with
# status 1, because the paths in the command line do not exist.
set -eu
refrain=$PWD/refrain
work=$(mktemp -d "$PWD/ranges.XXXXXX")
trap 'rm -rf "$work"' EXIT
none=$work/none/none
mkdir "$work/src" "$work/mnt"

fail() {
	echo "FAILED: $*"
	cat "$work/err"
	exit 1
}

big=9223372036854775808
values="0 -1 1e30 x $big 99999999999999999999999 nan"

# try OPTION ALLOWED COMMAND ...: check that each value is refused, except those
# in the list ALLOWED.
try() {
	option=$1 allowed=" $2 "
	shift 2
	for value in $values ''; do
		case $allowed in
		*" ${value:-''} "*) want=1 ;;
		*) want=2 ;;
		esac
		got=0
		"$refrain" "$@" "--$option=$value" >/dev/null 2>"$work/err" \
			</dev/null || got=$?
		[ $got -eq $want ] ||
			fail "$1 --$option='$value': exit $got, not $want"
		[ "$(wc -l <"$work/err")" -eq 1 ] ||
			fail "$1 --$option='$value': not one line"
		[ $want -eq 1 ] || grep -q -e "--$option" "$work/err" ||
			fail "$1 --$option='$value': the option is not named"
	done
}

mount="mount $work/src $work/mnt --cache $none:1M"
# shellcheck disable=SC2086 # words
{
	try limit '' $mount
	try chunk '' $mount
	try staging $big $mount
	try pages $big $mount
	try revalidate '' $mount
	try timeout '' $mount
}
for size in 0 -1 1e30 x 99999999999999999999999 '' 0% 101% 1K%; do
	got=0
	"$refrain" mount "$work/src" "$work/mnt" --cache "$none:$size" \
		2>"$work/err" || got=$?
	[ $got -eq 2 ] || fail "--cache DIR:$size: exit $got"
	grep -q -e '--cache' "$work/err" || fail '--cache is not named'
done
# A tier that is larger than its file system is refused, in the foreground and
# in the background.
if [ -w /dev/fuse ]; then
	for size in $big 9000T; do
		for word in -f --allow-other; do
			got=0
			"$refrain" mount "$work/src" "$work/mnt" $word \
				--cache "$work/new:$size" 2>"$work/err" ||
				got=$?
			[ $got -eq 2 ] || fail "a cache of $size: exit $got"
			grep -q "size $size of cache '$work/new' is larger" \
				"$work/err" || fail 'what is wrong?'
			[ ! -e "$work/new" ] || fail 'the cache stays'
		done
	done
fi

for option in batch window slack; do
	try $option '' plan "$none"
done
try epoch 0 plan "$none"
try echo '' plan "$none"
try step-ms '' plan "$none"
# The command refuses these values itself, without a request to the daemon.
for option in batch=16777217 slack=67108865 step-ms=1.1e9 echo=65; do
	got=0
	"$refrain" plan "$none" --$option 2>"$work/err" || got=$?
	[ $got -eq 2 ] || fail "plan --$option: exit $got"
done

# For most of these options, 0 stands for the default.
for option in record-bytes label-bytes epochs echo window min-lag \
	shuffle-window rank world height width area-min area-max \
	aspect-min aspect-max jitter cutout threads batches-ahead reads-ahead \
	max-damage step-ms timeout; do
	try $option 0 load "$none" --batch 4
done
for option in seed max-pixels memory steps; do
	try $option "0 $big" load "$none" --batch 4
done
try batch '' load "$none" --batch 4
try size 0 load "$none" --batch 4
try nice 0 load "$none" --batch 4
try mean '0 -1' load "$none" --batch 4 --std 1
try std 0 load "$none" --batch 4 --mean 0
try echo-max 0 load "$none" --batch 4 --echo auto

for option in classes images size; do
	try $option '' make-dataset "$none" --classes 2 --images 4
done
for option in seed threads; do
	try $option 0 make-dataset "$none" --classes 2 --images 4
done

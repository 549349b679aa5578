#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The order of a run is the same without a mount, and on a mount whose cache is
# empty, half full and full: for short epochs, subsets, mixes, several datasets
# and buckets.
set -eu
name=load-cache-order
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

# order WHERE KIND: the run of a kind on a directory; sets $got.
order() {
	case $2 in
	short) load "$1/train" --epochs 5 --epoch-examples 130 ;;
	subset) load "$1/train" --epochs 2 --subset 100 ;;
	mix) load "$1/train" --epochs 2 --mix 'class_000=3 class_002=1' ;;
	several)
		load "$1/train/class_001" "$1/train/class_002/" --epochs 2 \
			--mix 'class_001=1 train/class_002=2; 1: class_001=1'
		;;
	bucket) load "$1/train" --epochs 2 --bucket 4 ;;
	esac
	got="$(value stream_hash) $(value pixel_hash)"
}

all='short subset mix several bucket'
for kind in $all; do
	order "$src" $kind
	eval "want_$kind=\$got"
done
expect 'different orders' "$(for kind in $all; do
	eval "echo \"\$want_$kind\""
done | sort -u | wc -l)" 5

# same WHAT KIND
same_order() {
	order "$mnt" "$2"
	eval "expect '$2, cache $1' '$got' \"\$want_$2\""
}

for kind in $all; do
	half_mount
	same_order empty $kind
	"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
	same_order 'half full' $kind
	stop_mount
	rm -rf "$work/half"
done
warm_mount
for kind in $all; do
	same_order full $kind
	[ $kind = short ] || [ "$(value direct_hits)" -gt 0 ] ||
		fail "$kind: no entry was read directly"
done
note 'the order does not depend on the cache'

# Several datasets send one plan.
stop_mount
half_mount
order "$mnt" several
[ "$(status_field prefetch_issued)" -gt 0 ] || fail 'nothing was planned'
expect 'files that the plans lack' "$(status_field prefetch_wasted)" 0
note 'a plan for several datasets'

# What cannot be is refused in one line.
refused() {
	text=$1
	shift
	if "$refrain" load --batch 16 "$@" >"$work/out" 2>"$work/err"; then
		fail "not refused: $*"
	fi
	expect "lines for $*" "$(wc -l <"$work/err")" 1
	grep -q "$text" "$work/err" || fail "$*: $(cat "$work/err")"
}

refused 'echo must be 1' "$src/train" --bucket 4 --echo 2
refused 'exclude each other' "$src/train" --bucket 4 --mix classes=1
refused 'leave out mix, .*shuffle' "$src/train" --bucket 4 --in-order
refused 'may be two of the datasets' "$src/train" "$src/../src/train" \
	--mix train=1
refused 'must be one dataset' "$src/train" "$src/train" --root /
load "$src/train" --bucket 4 --echo 2 --echo-point batch --epochs 1
expect fresh "$(value fresh)" 300
note 'refusals'

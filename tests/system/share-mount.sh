#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Jobs that share batches, on a mount that caches half of the dataset, with two
# ranks: the pixels of each are those of a lone run of its rank on the bare
# directory. The host of a rank reads cached files directly in the tier, and its
# plan has the others fetched, once for all of its jobs.
set -eu
name=share-mount
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout
XDG_CACHE_HOME=$work/cache
XDG_RUNTIME_DIR=$work
export XDG_CACHE_HOME XDG_RUNTIME_DIR

images=240 epochs=2
"$refrain" make-dataset --classes 3 --images $images --size 96x72 \
	"$work/data" >/dev/null
rm -rf "$src"
mkdir "$src"
mv "$work/data" "$src/train"

# load OUT DATASET OPTION ...: run `refrain load`; its JSON is in OUT.
load() {
	out=$1
	shift
	timeout $((120 * patience)) "$refrain" load "$@" --batch 16 \
		--size 32 --seed 5 --echo 2 --epochs $epochs --world 2 \
		--equal-ranks --json --reads-ahead 8 \
		>"$out" 2>"$out.err" || {
		cat "$out.err"
		return 1
	}
}

# value NAME FILE
value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2"
}

# between WHAT GOT LEAST MOST
between() {
	if ! [ "$2" -ge "$3" ] || ! [ "$2" -le "$4" ]; then
		fail "$1: $2, not $3 to $4"
	fi
}

for rank in 0 1; do
	load "$work/alone.$rank" "$src/train" --rank $rank || fail "rank $rank"
done

# The entry of an image takes two blocks, and some take three.
start_mount "$src" "$mnt" --cache "$work/tier:1M" --fault ''
scan_through
timeout $((60 * patience)) "$refrain" warm "$mnt" >/dev/null || true
cached=$(status_field entries)
between 'cached images' "$cached" 1 $((images - 1))
missing=$(($(status_field bytes_known) - $(status_field resident_bytes)))

# The source stalls until both plans have all missing items of both epochs. An
# item that is read before a plan has it is soon dropped, but the kernel keeps
# its pages. The plan would then fetch it for the second epoch, in which nobody
# reads it from the mount.
"$refrain" fault "$mnt" stall=1 || fail 'cannot set a fault'
jobs=
for job in 1 2; do
	for rank in 0 1; do
		load "$work/job.$job.$rank" "$mnt/train" --rank $rank \
			--share "rank$rank" --share-jobs 2 &
		jobs="$jobs $!"
	done
done
wait_for 30 has_status planned_bytes $missing ||
	fail "$(status_field planned_bytes) of $missing bytes are planned"
"$refrain" fault "$mnt" '' || fail 'cannot remove a fault'
for job in $jobs; do
	wait "$job" || fail 'a job has failed'
done

decodes=0 direct=0
for rank in 0 1; do
	for job in 1 2; do
		for what in pixel_hash stream_hash steps; do
			expect "$what of rank $rank" \
				"$(value $what "$work/job.$job.$rank")" \
				"$(value $what "$work/alone.$rank")"
		done
		decodes=$((decodes + $(value decodes "$work/job.$job.$rank")))
		direct=$((direct + $(value direct_hits "$work/job.$job.$rank")))
	done
done
expect 'decodes of all jobs' "$decodes" $((epochs * images))
# On a busy machine some files are read through the mount.
between 'direct hits' "$direct" 1 $((epochs * cached))
expect 'direct hits that the mount was told' \
	"$(status_field direct_hits)" "$direct"
expect 'wasted by the plans' "$(status_field prefetch_wasted)" 0
between 'files fetched by plans' "$(status_field prefetch_issued)" \
	1 $((epochs * (images - cached)))
echo PASS

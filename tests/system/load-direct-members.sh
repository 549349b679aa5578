#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Examples with several parts on a mount: all parts are read in the tier, the
# plan names all of them, and each serving has the members that it has in the
# bare directory.
set -eu
name=load-direct-members
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

# A third of the images has no text, and each has a mask.
i=0
mkdir "$src/train/masks"
for image in "$src"/train/*/*.jpg; do
	stem=${image%.jpg}
	class=$(basename "$(dirname "$image")")
	i=$((i + 1))
	printf '{"image":%d}' $i >"$stem.json"
	[ $((i % 3)) = 0 ] || printf 'image %d' $i >"$stem.txt"
	mask=$src/train/masks/$class/$(basename "$stem").png
	mkdir -p "$(dirname "$mask")"
	head -c $((i * 30)) "$image" >"$mask"
done
expect images $i $images
files=$((images * 4 - images / 3))
bytes=$(tree_bytes "$src/train")

fields='image; json=json kind=bytes; txt=txt kind=bytes optional;
	masks=masks/ kind=bytes max=20000'

# parts DATASET OPTION ...: run `refrain load` with members; its JSON is in
# $work/json.
parts() {
	dataset=$1
	shift
	timeout 120 "$refrain" load "$dataset" --json --fields "$fields" \
		--batch 16 --size 32 --seed 5 --epochs 2 --echo 2 "$@" \
		>"$work/json" 2>"$work/err" || {
		cat "$work/err"
		fail "load $*"
	}
}

same_parts() {
	what=$1
	shift
	parts "$mnt/train" "$@"
	expect "pixels, $what" "$(value pixel_hash)" "$want"
	expect "fields, $what" "$(value fields_hash)" "$want_members"
	expect "errors, $what" "$(value errors)" 0
	expect "files, $what" "$(value files_read)" $((2 * files))
}

parts "$src/train"
want=$(value pixel_hash)
want_members=$(value fields_hash)
expect 'files in a directory' "$(value files_read)" $((2 * files))

# -- Cold: the plan names all parts, each once
start_mount "$src" "$mnt" --cache "$work/tier:64M"
scan_through
same_parts cold --reads-ahead 8 --batches-ahead 2 --threads 2
expect 'origin bytes, cold' "$(status_field origin_bytes)" "$bytes"
[ "$(status_field prefetch_issued)" -gt 0 ] || fail 'the plan was of no use'
expect 'wasted' "$(status_field prefetch_wasted)" 0
wait_for 10 has_status plans 0 || fail 'a plan is left'
note "cold: $(status_field prefetch_issued) of $files fetched ahead," \
	"$(value direct_hits) of $((2 * files)) direct"

# -- Warm: the mount is not asked. On a busy machine an answer may be late.
"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
for threads in 1 4; do
	for try in 1 2 3; do
		reads=$(mount_reads)
		direct_before=$(status_field direct_hit_bytes)
		same_parts "warm, $threads threads" --threads $threads
		[ "$(value direct_hits)" -lt $((2 * files)) ] || break
		note "run $try: only $(value direct_hits) direct hits"
	done
	expect 'direct hits' "$(value direct_hits)" $((2 * files))
	expect 'bytes of direct hits' \
		"$(($(status_field direct_hit_bytes) - direct_before))" \
		$((2 * bytes))
	expect 'reads that came to the mount' "$(mount_reads)" "$reads"
done
stop_mount

# -- Half of it fits: some parts are read in the tier, others are fetched
start_mount "$src" "$mnt" --cache "$work/half:$((bytes / 2048))K"
scan_through
same_parts half --threads 2
expect 'wasted, half' "$(status_field prefetch_wasted)" 0
note "half: $(value direct_hits) of $((2 * files)) direct"
stop_mount

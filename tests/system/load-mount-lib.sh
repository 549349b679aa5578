# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of `refrain load` on a mount; sourced after lib.sh. Makes
# "$src/train", a dataset of $images images and $bytes bytes.
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=300
"$refrain" make-dataset --classes 3 --images $images --size 96x72 \
	"$work/data" >/dev/null
rm -rf "$src"
mkdir "$src"
mv "$work/data" "$src/train"
bytes=$(tree_bytes "$src/train")

# load DATASET OPTION ...: run `refrain load`; its JSON is in $work/json.
load() {
	timeout 120 "$refrain" load "$@" --batch 16 --size 32 --seed 5 --json \
		>"$work/json" 2>"$work/err" || {
		cat "$work/err"
		fail "refrain load $*"
	}
}

value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/json"
}

# mount_reads: print the number of reads that the mount has answered.
mount_reads() {
	echo $(($(status_field hits) + $(status_field misses)))
}

# bare: run on the directory itself, and set $want to the hash of its pixels.
bare() {
	load "$src/train" --epochs 2 --echo 2
	want=$(value pixel_hash)
	expect 'direct hits in a directory' "$(value direct_hits)" 0
}

# same WHAT OPTION ...: check that a run on the mount has the same pixels as one
# on the directory.
dataset=$mnt/train
same() {
	what=$1
	shift
	told=$(status_field direct_hits)
	load "$dataset" --epochs 2 --echo 2 "$@"
	expect "direct hits that the mount was told, $what" \
		"$(($(status_field direct_hits) - told))" \
		"$(value direct_hits)"
	expect "pixels, $what" "$(value pixel_hash)" "$want"
	expect "errors, $what" "$(value errors)" 0
	expect "files, $what" "$(value files_read)" $((2 * images))
}

# all_direct WHAT OPTION ...: check a run that reads nothing through the mount.
# Reads wait at most 250 ms for an answer of the mount. On a busy machine the
# answer may come later, and these files are read through the mount; then the
# run is repeated.
all_direct() {
	for try in 1 2 3; do
		direct_before=$(status_field direct_hit_bytes)
		reads=$(mount_reads)
		same "$@"
		[ "$(value direct_hits)" -lt $((2 * images)) ] || break
		note "$1, run $try: only $(value direct_hits) direct hits"
	done
	expect "direct hits, $1" "$(value direct_hits)" $((2 * images))
	expect "bytes of direct hits, $1" \
		"$(($(status_field direct_hit_bytes) - direct_before))" \
		$((2 * bytes))
	expect "reads that came to the mount, $1" "$(mount_reads)" "$reads"
}

# warm_mount: mount, and cache everything.
warm_mount() {
	start_mount "$src" "$mnt" --cache "$work/tier:64M"
	scan_through
	"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
}

# half_mount: mount with room for half of the dataset.
half_mount() {
	start_mount "$src" "$mnt" --cache "$work/half:$((bytes / 2048))K"
	scan_through
}

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Memory that holds only one large example at a time: the same examples are
# damaged, because they do not fit, in every run, with any number of threads,
# from a folder, a tar, a mount, and the tier of a mount.
set -eu
name=load-tight
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=48
large=16
epochs=2
"$refrain" make-dataset --classes 3 --images $images --size 300x200 \
	"$work/data" >/dev/null
rm -rf "$src"
mkdir "$src"
mv "$work/data" "$src/train"
# A third is small, a third needs more than half of the memory, and a third does
# not fit. Each file has zeros after the end of its image.
i=0
for image in "$src"/train/*/*.jpg; do
	i=$((i + 1))
	case $((i % 3)) in
	0) truncate -s 15M "$image" ;;
	1) truncate -s "$((8000 + i * 50))K" "$image" ;;
	esac
done
expect images $i $images
tar -C "$src/train" --sort=name -cf "$work/train.tar" .

value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/json"
}

# load DATASET OPTION ...: run `refrain load`; its JSON is in $work/json.
load() {
	timeout 120 "$refrain" load "$@" --batch 4 --window 16 --size 32 \
		--seed 5 --epochs $epochs --memory 16M --max-damage 1 --json \
		>"$work/json" 2>"$work/err" || {
		cat "$work/err"
		fail "refrain load $*"
	}
}

# same WHAT DATASET OPTION ...: check with several numbers of threads that the
# same examples are damaged, and that the samples of their substitutes are the
# same.
same() {
	what=$1
	shift
	for threads in 1 2 4 8; do
		load "$@" --threads $threads
		expect "$what, $threads threads: errors" \
			"$(value errors_too_large)" $((large * epochs))
		expect "$what, $threads threads: pixels" "$(value pixel_hash)" \
			"$want"
	done
	note "$what: $((large * epochs)) errors, $(value direct_hits) direct"
}

load "$src/train"
want=$(value pixel_hash)
same 'a folder' "$src/train"
expect 'errors of other kinds' "$(value errors)" $((large * epochs))

# The examples of a tar have another order, so its pixels differ.
load "$work/train.tar"
folder=$want
want=$(value pixel_hash)
same 'a tar' "$work/train.tar"
want=$folder

start_mount "$src" "$mnt" --cache "$work/tier:200M"
same 'a mount that fills' "$mnt/train"
stop_mount

start_mount "$src" "$mnt" --cache "$work/full:1G"
scan_through
"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
same 'the tier of a mount' "$mnt/train"
[ "$(value direct_hits)" -gt 0 ] || fail 'nothing was read in the tier'
same 'a mount without its help' "$mnt/train" --no-mount-help
stop_mount

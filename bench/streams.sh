#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compare what two builds of refrain serve: stream_hash and pixel_hash of
# `refrain load` over a table of options. Run it after a change of the loader
# that must leave streams and pixels alone.
#
#	bench/streams.sh OLD [NEW]
#
# OLD and NEW are `refrain` programs. With one, prints its table. With two,
# prints the rows that differ, and exits with 1 if there are any.
#
#	FOLDER=DIR	images in directories, one a class; default: generated
#
# Generated images are smaller than twice the sample, so no decoder scales them.
set -u
[ $# -eq 1 ] || [ $# -eq 2 ] || {
	echo "usage: bench/streams.sh OLD [NEW]" >&2
	exit 2
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache"

make_shards() {
	n=1000
	mkdir "$work/shards" "$work/members" || exit 1
	head -n 160 "$work/names" | while read -r name; do
		cp "$folder/$name" "$work/members/$n.jpg"
		echo $((n % 9)) >"$work/members/$n.cls"
		n=$((n + 1))
	done
	for tens in 100 110; do
		(cd "$work/members" && find . -name "${tens%?}*" -type f |
			sort | tar -cf "$work/shards/$tens.tar" -T -)
	done
}

make_data() {
	folder=${FOLDER:-$work/folder}
	[ -n "${FOLDER:-}" ] || "$1" make-dataset "$folder" --classes 8 \
		--images 200 --size 300x200 >/dev/null || exit 1
	(cd "$folder" && find . -type f | sort | sed 's|^\./||') >"$work/names"
	mkdir "$work/raw" || exit 1
	awk '{print $0 "\t" NR % 7}' "$work/names" \
		>"$work/list"
	"$1" index "$folder" -o "$work/manifest" >/dev/null || exit 1
	make_shards
	for i in 1 2 3; do
		cat "$work/members"/*.jpg | tail -c +$((i * 1000)) |
			head -c $((3073 * 100)) >"$work/raw/$i.bin"
	done
}

# hashes NAME OPTION...: print one row.
hashes() {
	row=$1
	shift
	"$program" load "$@" --json 2>"$work/stderr" >"$work/out"
	sed 's/.*"stream_hash":"\([^"]*\)".*"pixel_hash":"\([^"]*\)".*/\1 \2/' \
		"$work/out" >"$work/line"
	[ -s "$work/line" ] || sed 's/^/failed: /' "$work/stderr" >"$work/line"
	echo "$row $(head -n 1 "$work/line")"
}

echo_rows() {
	for echo in 1 2 2.5 4; do
		for point in before after batch; do
			hashes "echo=$echo,$point" "$folder" --batch 16 \
				--epochs 2 --size 160 --seed 5 --echo "$echo" \
				--echo-point "$point" --drop-last
		done
		hashes "echo=$echo,short-last" "$folder" --batch 33 \
			--echo "$echo" --size 128 --type f32
	done
}

pixel_rows() {
	for type in u8 f16 f32; do
		for layout in nhwc nchw; do
			hashes "$type,$layout" "$folder" --batch 32 \
				--size 112x96 --type "$type" \
				--layout "$layout" --echo 2
		done
	done
	for augment in train none; do
		hashes "augment=$augment" "$folder" --batch 24 --size 224 \
			--augment "$augment"
	done
	hashes eval "$folder" --batch 24 --size 224 --augment eval --in-order
}

source_rows() {
	hashes list "$work/list" --source list --root "$folder" \
		--batch 20 --echo 2
	hashes manifest "$work/manifest" --source list --root "$folder" \
		--batch 20 --echo 2.5 --shuffle-window 64
	hashes tar "$work/shards" --batch 16 --echo 2 --size 128
	hashes raw "$work/raw" --source raw --record-bytes 3073 \
		--label-bytes 1 --batch 16 --echo 2
	for rank in 0 1 2; do
		hashes "rank=$rank" "$folder" --batch 8 --rank "$rank" \
			--world 3 --echo 2
		hashes "rank=$rank,pad" "$folder" --batch 8 --rank "$rank" \
			--world 3 --pad --drop-last --epochs 3 --size 96
	done
	hashes memory "$folder" --batch 8 --echo 4 --memory 24M --size 128
}

# table PROGRAM FILE: write the table of a program to FILE.
table() {
	program=$1
	{
		echo_rows
		pixel_rows
		source_rows
	} >"$2"
}

make_data "$1"
table "$1" "$work/old"
[ $# -eq 2 ] || {
	cat "$work/old"
	exit 0
}
table "$2" "$work/new"
diff "$work/old" "$work/new" && echo "all $(wc -l <"$work/old") rows agree"

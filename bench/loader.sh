#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares the loader with others, on the same files: a bare loop over memory
# that does the same work (the best that the libraries allow), PyTorch's
# DataLoader with torchvision, and FFCV, which reads its own copy of the files.
# Random crops to 224 x 224, mirrored or not, as normalised floats (NCHW), and
# as bytes; one thread that decodes. The figures are processor time of all
# threads and processes, medians of alternating rounds.
#
#	FILES=DIR	images in directories, one a class; default: the test
#			data (imagenet-500.tar) or generated pictures
#	ROUNDS=3
#	PEERS=no	the bare loop alone
#
# Prints a table and the bars, and writes bench-loader.json. A peer that is
# not installed is left out.
set -u
name=loader
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

rounds=${ROUNDS:-3}
bare=$PWD/bench/loader-bare ours=$PWD/bench/loader-run
data=${REFRAIN_TEST_DATA:-$bench/../../shared/data}
python=/usr/bin/python3
machine=$(machine) # before OMP_NUM_THREADS, which nproc obeys
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

# sort_tar TAR DIR: extract its images into twenty directories.
sort_tar() {
	mkdir -p "$work/flat" "$2" && tar -xf "$1" -C "$work/flat" || return 1
	n=0
	find "$work/flat" -type f | sort | while read -r f; do
		mkdir -p "$2/c$((n % 20))" && mv "$f" "$2/c$((n % 20))"
		n=$((n + 1))
	done
}

find_files() {
	files=${FILES:-$work/files}
	[ -n "${FILES:-}" ] && return
	if [ -r "$data/imagenet-500.tar" ]; then
		sort_tar "$data/imagenet-500.tar" "$files"
	else
		"$refrain" make-dataset "$files" --classes 20 --images 500 \
			--size 500x375 >/dev/null
	fi || bench_fail "there are no images"
}

# measure NAME COMMAND...: run it and keep its line of JSON as NAME.
measure() {
	what=$1
	shift
	timeout 600 "$@" >"$work/line" 2>"$work/stderr" || {
		cat "$work/stderr" >&2
		bench_fail "'$*' failed"
	}
	cat "$work/line" >>"$work/$what.out"
}

# pair NAME OPTIONS...: measure the bare loop and the loader; the order changes
# each round. The loop finds out which steps are steady, so it begins the first.
pair() {
	key=$1
	shift
	[ $((round % 2)) -eq 1 ] &&
		measure "bare-$key" "$bare" "$files" "$@" --steady --full
	skip=$(tail -n 1 "$work/bare-$key.out" | number skip)
	steps=$(tail -n 1 "$work/bare-$key.out" | number steps)
	measure "refrain-$key" "$ours" "$files" "$@" --skip "$skip" \
		--steps "$steps"
	[ $((round % 2)) -eq 1 ] ||
		measure "bare-$key" "$bare" "$files" "$@" --steady --full
}

# values NAME KEY: print the numbers at KEY of all rounds.
values() {
	while read -r line; do
		echo "$line" | number "$2"
	done <"$work/$1.out"
}

has_out() {
	[ -s "$work/$1.out" ]
}

# of NAME KEY: print the median of the numbers at KEY.
of() {
	values "$1" "$2" | median
}

# ratio_of A B: print the cost of an image of A divided by that of B, the median
# of the rounds.
ratio_of() {
	values "$1" cpu_ms >"$work/a"
	values "$2" cpu_ms >"$work/b"
	paste "$work/a" "$work/b" | awk '{ print $1 / $2 }' | median
}

# Print the sum of the parts that the bare loop timed, divided by the time of
# the loader.
parts_ratio() {
	for k in decode_ms augment_ms decodes images; do
		values "bare-$1" $k >"$work/$k"
	done
	values "refrain-$1" cpu_ms >"$work/cpu"
	paste "$work/decode_ms" "$work/augment_ms" "$work/decodes" \
		"$work/images" "$work/cpu" |
		awk '{ print ($1 * $3 / $4 + $2) / $5 }' | median
}

row() {
	has_out "$1" || return 0
	cpu=$(of "$1" cpu_ms) wall=$(of "$1" wall_ms)
	peak=$(of "$1" peak_bytes)
	awk -v what="$1" -v cpu="$cpu" -v wall="$wall" -v peak="$peak" \
		'BEGIN { printf("%-18s %10.0f %10.3f %10.3f %8.0f\n", what,
			1000 / cpu, cpu, wall, peak / 1048576) }'
	printf '%s{"what": "%s", "cpu_ms": %s, "wall_ms": %s, ' \
		"$comma" "$1" "$cpu" "$wall" >>"$work/json"
	printf '"peak_bytes": %s}' "$peak" >>"$work/json"
	comma=', '
}

# say KEY VALUE TEXT: print a figure, and add it to the JSON.
say() {
	printf '%s %s\n' "$3" "$2"
	printf ', "%s": %s' "$1" "$2" >>"$work/ratios"
}

echo "loader: $machine"
find_files
# A whole run in which every example is decoded once and served four times.
measure whole "$ours" "$files" --echo 4 --epochs 2
[ "$(($(of whole decodes) * 4))" -eq "$(of whole images)" ] ||
	bench_fail "e = 4: not a quarter of the images was decoded"

torchvision=no ffcv=no
if [ "${PEERS:-yes}" = yes ]; then
	$python -c 'import torch, torchvision' 2>/dev/null && torchvision=yes
fi
if [ "${PEERS:-yes}" = yes ] && $python -c 'import ffcv' >/dev/null 2>&1; then
	$python "$bench/peer_ffcv.py" write "$files" "$work/files.beton" \
		>/dev/null 2>&1 && ffcv=yes
fi

round=1
while [ "$round" -le "$rounds" ]; do
	pair e1 --echo 1 --epochs 6
	pair e1-u8 --echo 1 --epochs 6 --type u8
	if [ $torchvision = yes ]; then
		for workers in 0 1 2; do
			measure torchvision-$workers $python \
				"$bench/peer_torchvision.py" "$files" $workers 2
		done
		measure torchvision-0-u8 $python \
			"$bench/peer_torchvision.py" "$files" 0 2 u8
	fi
	if [ $ffcv = yes ]; then
		for layout in nchw nhwc u8; do
			measure ffcv-$layout $python "$bench/peer_ffcv.py" \
				read "$work/files.beton" 4 $layout
		done
	fi
	pair e2 --echo 2 --epochs 10
	pair e4 --echo 4 --epochs 10
	round=$((round + 1))
done

comma=''
echo "what               img/core-s  cpu ms/img wall ms/img peak MiB"
for what in refrain-e1 bare-e1 refrain-e2 bare-e2 refrain-e4 bare-e4 \
	torchvision-0 torchvision-1 torchvision-2 ffcv-nchw ffcv-nhwc \
	refrain-e1-u8 bare-e1-u8 torchvision-0-u8 ffcv-u8; do
	row $what
done
echo "parts, ms: whole image $(of bare-e1 full_ms)," \
	"region of a crop $(of bare-e1 decode_ms)," \
	"of four $(of bare-e4 decode_ms)," \
	"rest $(of bare-e1 augment_ms), of four $(of bare-e4 augment_ms)"
: >"$work/ratios"
say limit_e1 "$(ratio_of bare-e1 refrain-e1)" \
	"of the bare loop, e = 1 (bar 0.95):"
say limit_e4 "$(parts_ratio e4)" \
	"of the bare loop's parts, e = 4 (bar 0.95):"
[ $torchvision = yes ] && {
	best="torchvision-0"
	say torchvision_e1 "$(ratio_of $best refrain-e1)" \
		"times torchvision, e = 1 (bar 2.7):"
	say torchvision_e4 "$(ratio_of $best refrain-e4)" \
		"times torchvision, e = 4 (bar 5):"
}
[ $ffcv = yes ] && {
	say ffcv_e1 "$(ratio_of ffcv-nhwc refrain-e1)" \
		"times FFCV, floats, e = 1 (bar 1):"
	say ffcv_e1_u8 "$(ratio_of ffcv-u8 refrain-e1-u8)" \
		"times FFCV, bytes, e = 1 (bar 1):"
}
cat >"$json_out" <<END
{"bench": "loader", "machine": "$machine", "rounds": $rounds,
 "rows": [$(cat "$work/json")]$(cat "$work/ratios")}
END

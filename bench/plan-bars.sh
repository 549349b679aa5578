#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How near epochs with a plan come to what the source, the trainer and a bare
# reader allow: a grid of reads ahead, kinds of sources and sizes of memory.
# Each line shows the four bounds of an epoch in seconds, the ratio of every
# epoch to the greatest of them, what was fetched for nothing, and the balance
# of bytes. The bar: 1.05 from the third epoch on, 0 and 0.
#
# CELLS=worst runs those with few readers alone.
set -eu
name=plan-bars
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"
[ -w /dev/fuse ] || bench_skip 'cannot open /dev/fuse'
command -v python3 >/dev/null || bench_skip 'needs python3'

bytes=110000
below=0

# dataset FILES: one small picture, FILES times, each $bytes long.
dataset() {
	[ ! -d "$work/src.$1" ] || return 0
	"$refrain" make-dataset "$work/one" --classes 1 --images 1 \
		--size 64x64 >/dev/null
	mkdir -p "$work/src.$1/c"
	find "$work/one" -name '*.jpg' -exec cp {} "$work/picture" \;
	i=0
	while [ $i -lt "$1" ]; do
		cp "$work/picture" "$work/src.$1/c/$i.jpg"
		truncate -s $bytes "$work/src.$1/c/$i.jpg"
		i=$((i + 1))
	done
	rm -r "$work/one"
}

# cell FILES OPTION ...
cell() {
	files=$1
	shift
	dataset "$files"
	echo "$files files, $*"
	python3 "$bench/plan_bars.py" --refrain "$refrain" \
		--source "$work/src.$files" --files "$files" \
		--file-bytes $bytes "$@" || below=$((below + 1))
}

machine
for ahead in 1 8; do
	cell 500 --delay-ms 200 --reads-ahead $ahead
done
cell 1500 --delay-ms 200 --mount-options '--limit 1M --staging 20M'
if [ "${CELLS:-all}" = all ]; then
	for ahead in 2 16 64; do
		cell 500 --delay-ms 200 --reads-ahead $ahead
	done
	cell 4000 --delay-ms 200
	for ahead in 1 8 64; do
		cell 500 --rate 20000000 --reads-ahead $ahead
		cell 500 --rate 20000000 --delay-ms 200 --reads-ahead $ahead
	done
	for epochs in 2 12; do
		cell 500 --delay-ms 200 --epochs $epochs
	done
	cell 500 --delay-ms 200 --echo 2
fi
echo "$below cells below the bar"
[ $below -eq 0 ]

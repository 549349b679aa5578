#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The stream and the pixels of `refrain load` are the same at any number of
# threads, reads and batches ahead.
set -eu
name=load-threads
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

for point in before after batch; do
	about="threads, $point"
	load --echo 2.5 --echo-point $point --threads 1 --type f32 \
		--layout nchw
	want=$(hashes)
	for t in 1 2 4 8; do
		load --echo 2.5 --echo-point $point --threads $t --type f32 \
			--layout nchw --batches-ahead $t \
			--reads-ahead $((t * t))
		expect "$about $t" "$(hashes)" "$want"
	done
	# Another seed is another stream.
	load --echo 2.5 --echo-point $point --seed 6
	[ "$(hashes)" != "$want" ] || fail "$about: the seed changes nothing"
done
note 'hashes are the same at any number of threads'

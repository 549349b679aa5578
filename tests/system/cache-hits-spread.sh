#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Hits are spread evenly over an epoch: the number of hits in each tenth is that
# of a random draw of as many items, within four standard deviations. The hits
# of an epoch are exactly the items that were resident when it began.
set -eu
name=hits-spread
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 shuf split

files=1500
item_bytes=6000
tenth=$((files / 10))

python3 - "$src" $files $item_bytes <<'END'
import os, random, sys

rng = random.Random(2)
for i in range(int(sys.argv[2])):
    os.makedirs('%s/%d' % (sys.argv[1], i % 10), exist_ok=True)
    with open('%s/%d/%d' % (sys.argv[1], i % 10, i), 'wb') as f:
        f.write(rng.randbytes(int(sys.argv[3])))
END
(cd "$src" && find . -type f -printf '%P\n') | sort >"$work/names"

# Print random bytes for shuf: the orders are the same in every run.
random_for() {
	awk -v seed="$1" 'BEGIN {
		srand(seed)
		for (i = 0; i < 200000; i++)
			printf("%c", 1 + int(rand() * 126))
	}'
}

# tenths EPOCH: read the epoch, and write the number of hits of each tenth in a
# line. Returns false if another program dropped the caches during the epoch.
tenths() {
	random_for "$1" >"$work/random"
	shuf --random-source="$work/random" "$work/names" >"$work/order"
	rm -f "$work"/part.*
	split -l $tenth "$work/order" "$work/part."
	drop_caches
	dropped=$(drops)
	before=$(status_field hits)
	for part in "$work"/part.*; do
		"$reader" "$mnt" --threads 8 --files-from "$part" >/dev/null ||
			fail 'a read failed'
		after=$(status_field hits)
		echo $((after - before))
		before=$after
	done
	[ "$(drops)" = "$dropped" ]
}

for percent in 35 65; do
	rm -rf "$work/cache"
	# A file and its trailer are two blocks.
	start_mount "$src" "$mnt" \
		--cache "$work/cache:$((files * 8192 * percent / 100))"
	tenths 1 >/dev/null || : # the first epoch has filled the cache
	resident=$(status_field entries)
	expect 'entries' "$resident" $((files * percent / 100))
	for epoch in 2 3; do
		wait_for 20 tenths $epoch >"$work/hits.all" ||
			skip 'others drop the caches all the time'
		tail -n 10 "$work/hits.all" >"$work/hits"
		expect 'tenths' "$(wc -l <"$work/hits")" 10
		awk -v all=$files -v good="$resident" -v n=$tenth '
			{ sum += $1; if (min == "" || $1 < min) min = $1
			if ($1 > max) max = $1
			share = good / all
			mean = n * share
			rest = (all - n) / (all - 1)
			d = ($1 - mean) / sqrt(n * share * (1 - share) * rest)
			if (d < 0) d = -d
			if (d > worst) worst = d }
			END {
				printf("%d resident of %d: %d hits, a tenth " \
					"has %d to %d, mean %.1f, furthest " \
					"%.2f standard deviations", good,
					all, sum, min, max, mean, worst)
				if (sum != good || worst > 4)
					printf(" WRONG")
			}' "$work/hits" >"$work/said"
		note "$(cat "$work/said")"
		! grep -q WRONG "$work/said" || fail 'hits are not spread'
	done
	stop_mount
done

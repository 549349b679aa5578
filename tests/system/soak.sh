#!/bin/sh
# SPDX-License-Identifier: MIT
#
# soak.sh MINUTES: runs everything at once for a while: readers, even of pieces
# of chunks, a source that changes and is refreshed, warming, faults of the
# origin, entries that are damaged or deleted, and status. Checks that bytes are
# right, that nothing hangs, and that memory and open files of the daemon do not
# grow.
#
# Not part of `make check`: run `make soak MINUTES=3`. This also works in a
# build with a sanitizer.
set -eu
name='soak'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3

here=$(cd "$(dirname "$0")" && pwd)
minutes=${1:-3}
samples=$work/samples

# new_shard: replace the bytes of the file that is read in pieces.
new_shard() {
	head -c 4000000 /dev/urandom >"$work/shard"
	mv "$work/shard" "$src/shard"
}

make_tree "$src" 9 300 300000
new_shard
bytes=$(tree_bytes "$src")
# Files that do not change have sums; files that change are only read.
mkdir "$src/still" "$src/moving"
mv "$src"/d[0-4] "$src/still"
mv "$src"/d[56] "$src/moving"
"$reader" "$src/still" --make-sums "$work/sums" >/dev/null

# By default, ASan keeps 256 MB of freed memory.
ASAN_OPTIONS=quarantine_size_mb=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS
start_mount "$src" "$mnt" --limit 128K --chunk 64K --staging 2M \
	--pages 2M --timeout 20 --fault '' \
	--cache "$work/fast:$((bytes / 4))" --cache "$work/slow:$((bytes / 3))"
scan_through

# enough: is the time over, or has the test failed?
enough() {
	[ -e "$work/enough" ] || [ ! -d "$work" ]
}

# -- What goes on, each until it is enough ------------------------------------

reading() {
	n=0
	until enough; do
		n=$((n + 1))
		"$reader" "$mnt/still" --threads 4 --seed $n ${2:+--drop} \
			--io "$1" --sums "$work/sums" || {
			echo "$1: wrong" >>"$work/wrong"
			return 0
		}
	done
	echo "$1 $n epochs" >>"$work/done"
}

# pieces: read half of the pieces, then all; sometimes of another version.
pieces() {
	n=0
	until enough; do
		n=$((n + 1))
		python3 "$here/cache_parts.py" "$mnt" "$src" 16384 $n \
			$((2 - n % 2)) shard || {
			echo 'pieces: wrong' >>"$work/wrong"
			return 0
		}
		[ $((n % 10)) -eq 0 ] || continue
		new_shard
		"$refrain" refresh "$mnt" || echo refresh >>"$work/wrong"
	done
	echo "pieces $n times" >>"$work/done"
}

# reading_what_moves: read files that may disappear while they are read; their
# bytes have no sum.
reading_what_moves() {
	until enough; do
		"$reader" "$mnt/moving" --threads 2 --drop || :
	done
}

changing() {
	n=0
	until enough; do
		n=$((n + 1))
		find "$src/moving" -type f | sort | awk "NR % 7 == $n % 7" |
			while read -r file; do
				head -c $((n * 4099 % 200000)) /dev/urandom \
					>"$work/new"
				mv "$work/new" "$file"
			done
		"$refrain" refresh "$mnt" || echo refresh >>"$work/wrong"
		sleep 0.5
	done
	echo "refresh $n times" >>"$work/done"
}

warming() {
	until enough; do
		"$refrain" warm "$mnt" || :
		sleep 1
	done
}

damaging() {
	n=0
	until enough; do
		n=$((n + 1))
		find "$work/fast" "$work/slow" -mindepth 2 -path '*/??/*-*' \
			-type f | awk "NR % 41 == $n % 41" |
			while read -r entry; do
				case $((n % 3)) in
				0) rm -f "$entry" ;;
				1) truncate -c -s -7 "$entry" ;;
				2) printf 'x' | dd of="$entry" bs=1 \
					conv=notrunc,nocreat ;;
				esac || :
			done
		sleep 0.2
	done
	echo "damage $n times" >>"$work/done"
}

faulting() {
	until enough; do
		"$refrain" fault "$mnt" 'delay=3ms,error=0.02,short=0.02'
		sleep 1
		"$refrain" fault "$mnt" ''
		sleep 1
	done
}

# -- What must stay flat -------------------------------------------------------

# parts: count the parts of chunks in the tiers, which have their bytes and a
# map.
parts() {
	find "$work/fast" "$work/slow" -name '*-65544' 2>/dev/null | wc -l
}

# sample: print the RSS, the number of open files, the anonymous part of the
# RSS, and the number of parts.
sample() {
	awk -v files="$(find "/proc/$daemon/fd" 2>/dev/null | wc -l)" \
		-v parts="$(parts)" '
		/^VmRSS/ { rss = $2 }
		/^RssAnon/ { anon = $2 }
		END { print rss, files, anon, parts }' "/proc/$daemon/status"
}

# median_of: print the median of a column over a range of samples.
median_of() {
	sed -n "$2,$3p" "$samples" | awk "{ print \$$1 }" | sort -n |
		awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# flat WHAT COLUMN SLACK: check that the last third is above the second by at
# most SLACK.
flat() {
	before=$(median_of "$2" $((n / 3)) $((n * 2 / 3)))
	after=$(median_of "$2" $((n * 2 / 3)) $n)
	note "$1: $before, then $after"
	[ "$after" -le $((before + $3)) ] || fail "$1 grows"
}

for job in 'reading read drop' 'reading mmap drop' 'reading pread4k' \
	pieces reading_what_moves changing warming damaging faulting; do
	# shellcheck disable=SC2086 # a function and its arguments
	$job >>"$work/log" 2>&1 &
done
n=0
: >"$work/done"
end=$(($(date +%s) + minutes * 60))
while [ "$(date +%s)" -lt $end ]; do
	! daemon_gone || fail 'the daemon ended'
	[ ! -e "$work/wrong" ] || break
	timeout 60 "$refrain" status "$mnt" >/dev/null || fail 'no status'
	sample >>"$samples"
	n=$((n + 1))
	sleep 0.5
done
: >"$work/enough"
jobs_gone() {
	[ "$(wc -l <"$work/done")" -ge 6 ]
}
wait_for 60 jobs_gone || [ -e "$work/wrong" ] || fail 'somebody hangs'
[ ! -e "$work/wrong" ] ||
	fail "$(cat "$work/wrong"): $(tail -n 20 "$work/log")"
cat "$work/done"
# Print the course: the medians of ten parts of the time.
course=
for part in 0 1 2 3 4 5 6 7 8 9; do
	course="$course $(median_of 1 $((n * part / 10 + 1)) \
		$((n * (part + 1) / 10)))"
done
note "RSS in KiB, every tenth of the time:$course"
note "$(status_field hits) hits, $(status_field misses) misses," \
	"$(status_field checksum_errors) damaged," \
	"$(status_field entries_lost) lost," \
	"$(status_field invalidated) of old versions," \
	"$(status_field origin_retries) retries"
expect evictions "$(status_field evictions)" 0
parts_seen=$(awk '{ n += $4 > 0 } END { print n + 0 }' "$samples")
note "parts of chunks in $parts_seen of $n samples"
[ "$parts_seen" -gt 0 ] || fail 'no part of a chunk was kept'
[ $n -ge 12 ] || fail "only $n samples"
# A sanitizer keeps freed memory for each size, and a shadow of all addresses
# that were ever in use. Without a sanitizer, the RSS is flat within 1 %.
slack_pct=5
! ldd "$refrain" | grep -q -e libasan -e libtsan || slack_pct=25
rss=$(median_of 1 $((n / 3)) $((n * 2 / 3)))
flat 'RSS in KiB' 1 $((rss * slack_pct / 100 + 2048))
flat 'open files' 2 8
"$refrain" refresh "$mnt" >/dev/null
"$reader" "$mnt/still" --threads 4 --drop --sums "$work/sums" >/dev/null ||
	fail 'wrong at the end'
stop_mount
! grep -h -A40 -E 'Sanitizer|runtime error' "$work"/daemon.*.err ||
	fail 'a sanitizer has found something'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A program that cleans up old files has deleted parts of a cache. The directory
# is still the cache, only missing items are fetched, and a mount of another
# source sweeps the entries. If the directory has one foreign file, nothing is
# changed.
set -eu
name=cache-cleaned
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/cache-remount-lib.sh
. "$(dirname "$0")/cache-remount-lib.sh"

filled

# A program that cleans up has deleted all files but new entries and the
# manifest, or the manifest, too. The directory is still the cache, and only
# missing items are fetched.
for left in manifest nothing; do
	start
	epoch 0
	stop_mount
	for dir in "$work/fast" "$work/slow"; do
		find "$dir" -name 'refrain-*' -delete
		find "$dir" -type d -empty -delete
	done
	find "$work/slow" -name '0*' -type f -delete
	[ $left = manifest ] || rm "$work/slow/manifest"
	start
	scan_through
	wait_for 20 has_status ready true || fail 'admission stays closed'
	missing=$((bytes - $(status_field resident_bytes)))
	epoch $missing
	expect 'entries that are swept' "$(status_field invalidated)" 0
	wait_for 20 whole || fail 'not everything was admitted'
	"$refrain" status "$mnt" | grep -q "had lost its file 'refrain-tier'" ||
		fail 'status says nothing'
	stop_mount
done

# A mount of another source does the same, and sweeps the entries.
make_tree "$work/other" 2 20 100000
find "$work/fast" "$work/slow" -name 'refrain-tier' -delete
start_mount "$work/other" "$mnt" --cache "$work/fast:20M"
scan_through
diff -r "$work/other" "$mnt" || fail 'another source'
[ "$(status_field invalidated)" -gt 0 ] || fail 'the entries stay'
stop_mount

# With one foreign file, nothing is changed.
rm "$work/fast/refrain-tier"
echo mine >"$work/fast/ab/notes"
find "$work/fast" | sort >"$work/before"
! "$refrain" mount "$work/other" "$mnt" --foreground --cache \
	"$work/fast:20M" 2>"$work/err" || fail 'mount takes a foreign file'
grep -q "'ab/notes'" "$work/err" || fail "$(cat "$work/err")"
! "$refrain" clear "$work/fast" 2>"$work/err" ||
	fail 'clear takes a foreign file'
grep -q "'ab/notes'" "$work/err" || fail "$(cat "$work/err")"
find "$work/fast" | sort | cmp - "$work/before" ||
	fail 'the directory changed'
rm "$work/fast/ab/notes"
"$refrain" clear "$work/fast" >/dev/null || fail 'cannot clear'
"$refrain" clear "$work/slow" >/dev/null || fail 'cannot clear'
rmdir "$work/fast" "$work/slow" || fail 'something is left'

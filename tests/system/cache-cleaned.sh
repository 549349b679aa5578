#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A cleaner of old files has deleted parts of a cache: the directory is still
# the cache, only what is missing is fetched, and a mount of another source
# sweeps the entries. With one foreign file nothing is touched.
set -eu
name=cache-cleaned
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/cache-remount-lib.sh
. "$(dirname "$0")/cache-remount-lib.sh"

filled

# A cleaner of old files has deleted all but new entries and the list of files,
# or the list as well: the directory is still the cache, and only what is
# missing is fetched.
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

# The same for a mount of another source, which sweeps the entries.
make_tree "$work/other" 2 20 100000
find "$work/fast" "$work/slow" -name 'refrain-tier' -delete
start_mount "$work/other" "$mnt" --cache "$work/fast:20M"
scan_through
diff -r "$work/other" "$mnt" || fail 'another source'
[ "$(status_field invalidated)" -gt 0 ] || fail 'the entries stay'
stop_mount

# One foreign file, and nothing is touched.
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

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A cache outlives its mount: what was cached costs the origin nothing after
# an unmount, and nothing after kill -9. The dead mount is detached by the next
# one, and entries of versions that ceased in between are swept.
set -eu
name=remount
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum

start() {
	start_mount "$src" "$mnt" --cache "$work/fast:20M" \
		--cache "$work/slow:50M" "$@"
}

# epoch WANT: read everything; the origin gives that many bytes.
epoch() {
	before=$(status_field origin_bytes)
	drop_caches
	"$reader" "$mnt" --threads 8 --sums "$work/sums" >/dev/null ||
		fail 'wrong bytes'
	expect 'origin bytes' $(($(status_field origin_bytes) - before)) "$1"
}

# Everything is cached; to wait for is the publication of the last of it.
whole() {
	[ "$(status_field resident_bytes)" -eq "$bytes" ]
}

within_budgets() {
	"$refrain" status "$mnt" --json | python3 -c '
import json, sys
for t in json.load(sys.stdin)["tiers"]:
    if t["used_bytes"] + t["reserved_bytes"] > t["capacity_bytes"]:
        sys.exit(1)' || fail 'over budget'
}

make_tree "$src" 7 150 1000000
"$reader" "$src" --make-sums "$work/sums" >/dev/null
bytes=$(tree_bytes "$src")

start
epoch "$bytes"
wait_for 20 whole || fail 'not everything was admitted'
stop_mount

# After an unmount.
start
epoch 0
expect 'misses after an unmount' "$(status_field misses)" 0

# After kill -9: the mount is dead, and the next mount takes its place.
kill_mount
stat -f "$mnt" >/dev/null 2>&1 && fail 'a mount without a daemon answers'
expect 'mounts that are left' "$(mounts_below "$mnt" | wc -l)" 1
start
expect 'mounts' "$(mounts_below "$mnt" | wc -l)" 1
epoch 0
note "all $bytes bytes from the cache after an unmount and after kill -9"
stop_mount

# kill -9 while the cache is being filled: what is there is right, within its
# budget, and not fetched again.
rm -rf "$work/fast" "$work/slow"
start --fault rate=4M
(
	trap - EXIT
	exec "$reader" "$mnt" --threads 8 >/dev/null 2>&1
) &
readers=$!
admitted() {
	[ "$(status_field admitted)" -ge 30 ]
}
wait_for 20 admitted || fail 'nothing is admitted'
kill_mount
wait $readers && fail 'readers of a dead mount were content'
start
within_budgets
resident=$(status_field resident_bytes)
[ "$resident" -gt 0 ] || fail 'nothing is left after kill -9'
"$refrain" verify "$mnt" >/dev/null || fail 'damaged entries after kill -9'
leftovers=$(find "$work/fast/tmp" "$work/slow/tmp" -type f | wc -l)
expect 'unfinished entries' "$leftovers" 0
epoch $((bytes - resident))
note "$resident of $bytes bytes were left after kill -9 in the middle"
wait_for 20 whole || fail 'not everything was admitted'
stop_mount

# change FIRST: 20 files of the source, in one of three ways.
change() {
	changed=0
	for f in $(find "$src" -type f -size +0 | sort | tail -n "+$1" |
		head -n 20); do
		changed=$((changed + 1))
		case $((changed % 3)) in
		0) rm "$f" ;;
		1) echo "changed $1 $changed" >"$f" ;;
		2) echo "replaced $1" >"$f.new" && mv "$f.new" "$f" ;;
		esac
		[ -e "$f" ] || continue
		changed_bytes=$((changed_bytes + $(stat -c %s "$f")))
	done
}

# Files that change while nothing is mounted. The manifest that was kept is the
# truth, and the origin is asked for nothing, until a refresh: then the entries
# of old versions go.
changed_bytes=0
change 1
start
scan_through
epoch 0
for counter in origin_reads origin_lists invalidated; do
	expect "$counter of a warm epoch" "$(status_field $counter)" 0
done
"$refrain" refresh "$mnt" >/dev/null || fail 'refresh'
expect 'entries that a refresh drops' "$(status_field invalidated)" $changed
"$reader" "$src" --make-sums "$work/sums" >/dev/null
bytes=$(tree_bytes "$src")
expect 'resident bytes' "$(status_field resident_bytes)" \
	$((bytes - changed_bytes))
epoch $changed_bytes
wait_for 20 whole || fail 'not everything was admitted'
stop_mount

# Without a manifest there is a scan, which sweeps them.
changed_bytes=0
change 60
"$reader" "$src" --make-sums "$work/sums" >/dev/null
bytes=$(tree_bytes "$src")
rm "$work/slow/manifest"
start
scan_through
expect 'entries that a scan sweeps' "$(status_field invalidated)" $changed
expect 'resident bytes' "$(status_field resident_bytes)" \
	$((bytes - changed_bytes))
epoch $changed_bytes
expect evictions "$(status_field evictions)" 0
note "$changed entries of old versions were dropped by a refresh, and as" \
	'many by a scan, and no others'
stop_mount
"$refrain" verify "$work/slow" >/dev/null || fail 'verify finds damage'

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
ls -R "$work/fast" >"$work/before"
! "$refrain" mount "$work/other" "$mnt" --foreground --cache \
	"$work/fast:20M" 2>"$work/err" || fail 'mount takes a foreign file'
grep -q "'ab/notes'" "$work/err" || fail "$(cat "$work/err")"
! "$refrain" clear "$work/fast" 2>"$work/err" ||
	fail 'clear takes a foreign file'
grep -q "'ab/notes'" "$work/err" || fail "$(cat "$work/err")"
ls -R "$work/fast" | cmp - "$work/before" || fail 'the directory changed'
rm "$work/fast/ab/notes"
"$refrain" clear "$work/fast" >/dev/null || fail 'cannot clear'
"$refrain" clear "$work/slow" >/dev/null || fail 'cannot clear'
rmdir "$work/fast" "$work/slow" || fail 'something is left'

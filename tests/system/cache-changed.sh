#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files that change while nothing is mounted: entries of old versions are swept
# by a refresh, or by a scan if there is no manifest. No other entry is swept.
set -eu
name=cache-changed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/cache-remount-lib.sh
. "$(dirname "$0")/cache-remount-lib.sh"

filled

# change FIRST: change 20 files of the source, in one of three ways.
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

# Files that change while nothing is mounted. Until a refresh, the daemon uses
# the kept manifest and sends the origin no request. The refresh sweeps the
# entries of old versions.
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

# Without a manifest, a scan sweeps these entries.
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

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Random keys of many alphabets, among them some that cannot be paths: a mount
# shows exactly the other keys, and the store accepts the signature of each
# read. Buckets of three shapes are listed with as few pages as possible, and
# servers with other ways of listing work. ODD_KEYS is the number of keys, and
# ODD_SEED their seed.
set -u
name=s3-keys
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'
LC_ALL=C
export LC_ALL

s3_mount() {
	start_mount "s3://$1" "$work/mnt" --cache "$work/tier:100M" \
		--endpoint-url "$far"
	scan_through
}

# shown TYPE FILE: check that the paths of this type in the mount are those in
# FILE.
shown() {
	(cd "$mnt" && find . -mindepth 1 -type "$1" -printf '%P\0' | sort -z) |
		cmp - "$2" || fail "other paths of type $1 than were put"
}

far_start files=12000 size=1000
hidden=$(python3 "$(dirname "$0")/odd_keys.py" "${far##*:}" "$work/files" \
	"$work/dirs" "${ODD_KEYS:-2500}" "${ODD_SEED:-7}") || fail 'no keys'
n=$(tr -cd '\0' <"$work/files" | wc -c)
s3_mount odd
shown f "$work/files"
shown d "$work/dirs"
expect hidden "$(status_field origin_hidden)" "$hidden"
far_zero
"$reader" "$mnt" --threads 32 >"$work/read" 2>&1 || fail "$(cat "$work/read")"
expect GETs "$(far_count gets)" "$n"
expect 'refused requests' "$(far_count refused)" 0
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
shown f "$work/files"
shown d "$work/dirs"
note "$n files, $hidden keys hidden"
stop_mount
rm -rf "$work/tier"

# At most a tenth more pages than full ones are listed, plus a few at the
# beginning.
for dirs in 0 30 12000; do
	far_set dirs=$dirs
	far_zero
	s3_mount many
	expect "files in $dirs directories" \
		"$(find "$mnt" -type f | wc -l)" 12000
	[ "$(far_count lists)" -le 64 ] ||
		fail "$(far_count lists) pages of $dirs directories"
	stop_mount
	rm -rf "$work/tier"
done

# Servers that ignore start-after, and pages without keys.
far_set dirs=0
for habit in no_after blank; do
	far_set $habit=1
	s3_mount many
	expect "files with $habit" "$(find "$mnt" -type f | wc -l)" 12000
	stop_mount
	rm -rf "$work/tier"
	far_set $habit=0
done

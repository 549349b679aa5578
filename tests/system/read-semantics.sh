#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A program sees the mount as it would see a read-only copy of
# the source: names and links of all kinds, whichever way it reads; inodes are
# versions of files, and nothing can be changed.
set -eu
name=semantics
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 mount stat

tree() {
	python3 "$(dirname "$0")/read_semantics.py" "$@" "$src" "$mnt" ||
		fail "read_semantics.py $1"
}

tree make
start_mount "$src" "$mnt" --cache "$work/cache:200M" --chunk 256K --limit 1M
tree compare # while the scan may still be running
scan_through
tree compare
drop_caches
tree compare

# Read in every way: files of one item, files in chunks, and files that do not
# fill a page; not cached, from the tier, and from the page cache.
for size in 0 1 4096 70001 1000003 3000017; do
	"$helpers/read_ways" "$mnt/sizes/$size" "$src/sizes/$size" ||
		fail "file of $size bytes, cold"
	drop_caches
	"$helpers/read_ways" "$mnt/sizes/$size" "$src/sizes/$size" ||
		fail "file of $size bytes, cached"
	"$helpers/read_ways" "$mnt/sizes/$size" "$src/sizes/$size" ||
		fail "file of $size bytes, hot"
done

# statfs reports the dataset: files, directories, links and the root.
total=$(find "$mnt" -printf x | wc -c)
expect 'inodes of statfs' "$(stat -f -c %c "$mnt")" "$total"
blocks=$((($(tree_bytes "$src") + 4095) / 4096))
expect 'blocks of statfs' "$(stat -f -c %b "$mnt")" "$blocks"
expect 'free blocks of statfs' "$(stat -f -c %f "$mnt")" 0
# df shows the mount as full. Alerting rules for full disks ignore read-only
# file systems, by the options that node_exporter reads.
grep -q " $mnt fuse.refrain ro," /proc/mounts || fail 'not read-only to rules'
expect 'block size of statfs' "$(stat -f -c %S "$mnt")" 4096

# Nothing can be changed, even by root, and even after a remount by root.
options=$(awk -v m="$mnt" '$5 == m { print $6 }' /proc/self/mountinfo)
for option in ro nosuid nodev; do
	case ,$options, in
	*,$option,*) ;;
	*) fail "not mounted $option: $options" ;;
	esac
done
before=$(cd "$src" && find . -printf '%p %s %m %U %G %T@ %l\n' | sort |
	sha256sum)
"$helpers/refused" "$mnt/changes" || fail 'a change was not refused'
mount -i -o remount,rw "$mnt" || fail 'cannot remount'
"$helpers/refused" "$mnt/changes" || fail 'a change was not refused when rw'
after=$(cd "$src" && find . -printf '%p %s %m %U %G %T@ %l\n' | sort |
	sha256sum)
expect 'the source' "$after" "$before"
mount -i -o remount,ro "$mnt" || fail 'cannot remount'

# Inode numbers are the same after a remount, and a new version has another
# number.
(cd "$mnt" && find . -printf '%p %i\n' | sort) >"$work/inodes"
expect 'inodes that two names have' \
	"$(find "$mnt" -printf '%i\n' | sort | uniq -d | wc -l)" 0
stop_mount
start_mount "$src" "$mnt" --cache "$work/cache:200M" --chunk 256K --limit 1M
(cd "$mnt" && find . -printf '%p %i\n' | sort) | cmp - "$work/inodes" ||
	fail 'inodes differ after a remount'
old=$(stat -c %i "$mnt/changes/file")
echo 'a new version' >"$src/changes/file"
expect 'inode before a refresh' "$(stat -c %i "$mnt/changes/file")" "$old"
"$refrain" refresh "$mnt" changes/file >/dev/null
new=$(stat -c %i "$mnt/changes/file")
[ "$new" != "$old" ] || fail 'a new version has the old inode'
expect 'new version' "$(cat "$mnt/changes/file")" 'a new version'
stop_mount

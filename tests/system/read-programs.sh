#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Ordinary programs give the same results on a mount as on the source: copies,
# archives, listings, and the pictures that a trainer's worker processes read,
# epoch after epoch.
set -eu
name=programs
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 tar rsync md5sum find cp diff

make_tree "$src" 5 150 1000000
ln -s ../d1 "$src/d0/link"
touch -d 2001-02-03T04:05:06.789 "$src/d0" "$src/d0/e0/f00042"
chmod 600 "$src/d1/e1/f00001"
(cd "$src" && find . -type f -exec md5sum {} +) >"$work/md5"
bytes=$(tree_bytes "$src")
start_mount "$src" "$mnt" --cache "$work/cache:$((bytes / 2))"

# listing DIR: print everything that a walk shows, except the sizes of
# directories.
listing() {
	(cd "$1" && find . -type d -printf '%p %m %U %G %T@\n' -o \
		-printf '%p %y %s %m %U %G %T@ %l\n' | sort)
}

listing "$src" >"$work/listing"
listing "$mnt" | cmp - "$work/listing" || fail 'find shows something else'
cp -a "$mnt" "$work/copy" || fail 'cp -a'
diff -r --no-dereference "$src" "$work/copy" || fail 'the copy differs'
listing "$work/copy" | cmp - "$work/listing" ||
	fail 'cp -a has lost attributes'
drop_caches
(cd "$mnt" && md5sum --quiet -c "$work/md5") || fail 'md5sum -c'
drop_caches
tar -C "$mnt" -cf "$work/tar" . || fail 'tar -c'
tar -C "$src" -df "$work/tar" || fail 'the archive differs'
tar -C "$src" -cf - . | tar -C "$mnt" -df - || fail 'tar -d'
drop_caches
rsync -a --dry-run --checksum --delete --itemize-changes "$src/" "$mnt/" \
	>"$work/rsync" || fail 'rsync'
[ ! -s "$work/rsync" ] || fail "rsync sees: $(head "$work/rsync")"
rsync -a --checksum "$mnt/" "$work/copy/" || fail 'rsync from the mount'
listing "$work/copy" | cmp - "$work/listing" || fail 'rsync copied'
rm -rf "$work/copy" "$work/tar"

# Only the names in the picture folder matter here, not the contents of the
# files.
load() {
	python3 "$(dirname "$0")/loader.py" "$@" || fail "loader.py $*"
}
drop_caches
load mmap "$mnt" "$src.sums"
drop_caches
load folder "$mnt" "$src.sums"
expect evictions "$(status_field evictions)" 0
stop_mount

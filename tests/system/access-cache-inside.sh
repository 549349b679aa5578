#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A cache inside the source, or around it, is refused, even through a bind
# mount.
set -eu
name=access-cache-inside
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse python3
requires_users

# The mounts end with the namespace.
mkdir -p "$work/origin/deep/cache" "$work/all" "$work/part" "$work/around/src"
echo content >"$work/origin/file"
# shellcheck disable=SC2016 # for the inner shell
unshare -m --propagation private sh -eu -c '
	refrain=$1 work=$2 mnt=$3
	mount --bind "$work/origin" "$work/all"
	mount --bind "$work/origin/deep" "$work/part"
	mount --bind "$work/around/src" "$work/all/deep/cache"
	for dir in "$work/all/new" "$work/all/deep" "$work/part" \
		"$work/part/new" "$work/part/cache"; do
		"$refrain" mount "$work/origin" "$mnt" --cache "$dir:8M" \
			2>"$work/err" && { echo "accepted: $dir"; exit 1; }
		grep -q "inside the source" "$work/err" || {
			cat "$work/err"; exit 1; }
	done
	"$refrain" mount "$work/all" "$mnt" --cache "$work/origin/x:8M" \
		2>"$work/err" && { echo "accepted: origin/x"; exit 1; }
	grep -q "inside the source" "$work/err"
	"$refrain" mount "$work/part" "$mnt" --cache "$work/origin:8M" \
		2>"$work/err" && { echo "accepted: around the source"; exit 1; }
	grep -q "the source is inside" "$work/err"
	# Another file system that is mounted there is not the source.
	"$refrain" mount "$work/origin" "$mnt" --cache "$work/around/c:8M"
	cat "$mnt/file" >/dev/null
	"$refrain" umount "$mnt"
' sh "$refrain" "$work" "$mnt" || fail 'a cache inside the source'
expect 'names in the source' "$(find "$work/origin" | wc -l)" 4

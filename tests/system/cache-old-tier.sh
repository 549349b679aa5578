#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A tier and a manifest of the first version remain valid. tier-1.tar.gz was
# packed before versions of files had tags, from a tier that a mount of
# synthetic:files=3,size=700,seed=3 had filled:
#   tar -cz -f tier-1.tar.gz --owner=0 --group=0 \
#       tier/manifest tier/refrain-tier tier/*/*-700
set -eu
name=old-tier
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse tar gzip md5sum

tar -xz -f "$(dirname "$0")/tier-1.tar.gz" -C "$work" --no-same-owner
chmod 700 "$work/tier" "$work/tier"/??
cp "$work/tier/manifest" "$work/manifest"
# With this fault all requests fail, so names and bytes come from the tier
# alone.
start_mount synthetic:files=3,size=700,seed=3 "$mnt" \
	--cache "$work/tier:1M" --fault error=1,meta=1,match=d0
sum=$(find "$mnt" -type f | sort | xargs cat | md5sum | cut -c 1-32)
expect 'digest of the bytes' "$sum" 7fd7ca212b4bc5f4ee6680a9589fa588
expect 'inode number' "$(stat -c %i "$mnt/d0000/f000000.bin")" \
	11699218409717358406
expect hits "$(status_field hits)" 3
expect misses "$(status_field misses)" 0
expect 'origin lists' "$(status_field origin_lists)" 0
expect 'origin bytes' "$(status_field origin_bytes)" 0
stop_mount
# Files without tags are stored in the old format, so an older build can read
# the manifest, too.
cmp "$work/tier/manifest" "$work/manifest" || fail 'another manifest'

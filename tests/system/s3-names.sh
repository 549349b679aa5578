#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Names of a store: marks of directories, and a prefix with odd characters.
# Names that can no longer be listed do not count as deleted.
set -u
name=s3-names
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-answers-lib.sh
. "$(dirname "$0")/s3-answers-lib.sh"

# -- Marks of directories, and a prefix with odd characters
far_put odd/empty/ ''
far_put odd/both file
far_put odd/both/ ''
far_put "odd/p%20%25%2B~%27%C3%A4&=/deep/x" inside
far_put "odd/p%20%25%2B~%27%C3%A4&=x" outside
s3_mount odd --cache "$work/tier:1M"
scan_through
[ -d "$mnt/empty" ] || fail 'a directory without files is not shown'
[ -d "$mnt/both" ] || fail 'a file hides a directory'
expect 'names in an empty directory' "$(find "$mnt/empty" | wc -l)" 1
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
[ -d "$mnt/both" ] || fail 'a refresh shows the file'
[ -d "$mnt/empty" ] || fail 'a refresh hides a directory'
curl -sf -X DELETE "$far/odd/both/"
curl -sf -X DELETE "$far/odd/empty/"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
expect 'a file without a mark beside it' "$(cat "$mnt/both")" file
[ ! -e "$mnt/empty" ] || fail 'a directory that is gone'
end_mount
s3_mount "odd/p %+~'ä&=/" --cache "$work/tier:1M" --timeout 2
scan_through
expect 'files below a prefix' "$(find "$mnt" -type f)" "$mnt/deep/x"
expect 'one of them' "$(cat "$mnt/deep/x")" inside

# -- Names that can no longer be listed do not count as deleted
for refusal in no_list=1 busy=1 never=1; do
	far_set "$refusal"
	timeout $((60 * patience)) "$refrain" refresh "$mnt" >"$work/said" 2>&1
	far_set "${refusal%%=*}=0"
	expect "$refusal: names" "$(find "$mnt" -type f | wc -l)" 1
	expect "$refusal: bytes" "$(cat "$mnt/deep/x")" inside
done
curl -sf -X DELETE "$far/odd/p%20%25%2B~%27%C3%A4&=/deep/x"
"$refrain" refresh "$mnt" >"$work/said" 2>&1
expect 'a cached file of a prefix that is empty now' \
	"$(cat "$mnt/deep/x")" inside
stop_mount

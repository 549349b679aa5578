#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Keys of a store that are odd or cannot be paths. A refresh finds new, changed
# and deleted objects, and a reader never gets a mixture of an object that is
# overwritten.
set -u
name=s3-refresh
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-reads-lib.sh
. "$(dirname "$0")/s3-reads-lib.sh"

# -- Keys: odd ones, and those that cannot be paths
far_put odd/plain x
far_put 'odd/a%2Bb%20%7E%25%26%27%3D' y
far_put 'odd/%C3%A4%E6%BC%A2/%F0%9F%98%80' z
far_put odd/a//b hidden
far_put odd/x/../y hidden
far_put odd/d shadowed
far_put odd/d/e shown
far_put odd/mark/ ''
s3_mount odd
scan_through
expect 'an odd key' "$(cat "$mnt/a+b ~%&'=")" y
expect 'a deep one' "$(cat "$mnt/ä漢/😀")" z
expect 'a directory hides a file' "$(cat "$mnt/d/e")" shown
expect hidden "$(status_field origin_hidden)" 2
wait_for 10 grep -q 'cannot be a path' "$daemon_err" || fail 'no hidden keys'
expect 'lines about hidden keys' \
	"$(grep -c 'cannot be a path' "$daemon_err")" 1

# -- Refresh finds new, changed and deleted objects
far_put odd/new n
far_put odd/plain changed
curl -sf -X DELETE "$far/odd/d/e"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
expect new "$(cat "$mnt/new")" n
expect changed "$(cat "$mnt/plain")" changed
expect 'the file again' "$(cat "$mnt/d")" shadowed

# A reader never gets a mixture of an object that is overwritten between listing
# and reading.
far_put odd/late first
"$refrain" refresh "$mnt" >/dev/null
far_put odd/late second
got=$(cat "$mnt/late" 2>/dev/null)
case $got in
second | '') ;;
*) fail "a version that is gone: $got" ;;
esac
stop_mount
rm -rf "$work/tier"
! grep -rq 'Secret/' "$work"/daemon.*.err || fail 'a secret is in the log'

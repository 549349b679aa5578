#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A web server with WebDAV that redirects to another host: the file is read from
# there, and no secret is sent there.
set -u
name=http-elsewhere
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-safety-lib.sh
. "$(dirname "$0")/s3-safety-lib.sh"

second_far
far_put 'dav/d/a%20b' one
far_put dav/two two2
curl -sf -X PUT --data-binary one "$second/dav/d/a%20b"
far_set verify=0
far_zero
start_mount "$far/dav" "$work/mnt" --cache "$work/tier:20M"
scan_through
far_set away="${second##*:}"
expect 'a file elsewhere' "$(cat "$mnt/d/a b")" one
far_set away=0
expect 'a file here' "$(cat "$mnt/two")" two2
# One more listing than there are directories: the start checks whether the
# server has listings.
expect 'directories listed' "$(far_count lists)" 3
expect 'requests there with a secret' "$(second_count authorized)" 0
[ "$(second_count gets)" -ge 1 ] || fail 'nothing was asked there'
end_mount
far_set verify=1
! grep -rqaE 'Secret/|token/of' "$work"/daemon.*.err ||
	fail 'a secret is in the log'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Rare answers of a store about an object: each ends in the right bytes or in
# the error that it means, and the log says why. A request is repeated after a
# failure, but not after an answer.
set -u
name=s3-answers
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-answers-lib.sh
. "$(dirname "$0")/s3-answers-lib.sh"

s3_mount many --cache "$work/tier:20M" --timeout 2
scan_through
ends_with archived=1 f0000001.bin 'Permission denied'
ends_with code=403 f0000002.bin 'Permission denied'
ends_with code=400 f0000003.bin 'Input/output error'
ends_with no_length=1 f0000005.bin 'Input/output error'
logs "'f0000001.bin' cannot be used: the object is archived"
logs "'f0000002.bin' cannot be used: these credentials do not permit"
logs "'f0000003.bin' cannot be used: its HTTP status is 400"
# After an answer, only the kernel repeats the request, once. After a failure,
# the daemon repeats it.
far_zero
ends_with code=403 f0000006.bin 'Permission denied'
[ "$(far_count gets)" -le 2 ] || fail "$(far_count gets) GETs end with 403"
for code in 500 502 504; do
	far_zero
	ends_with code=$code f0000007.bin 'Input/output error'
	[ "$(far_count gets)" -gt 2 ] || fail "$code is not asked for again"
done
# Each object can be read again as before.
far_set verify=0
for f in 1 2 3 6 7; do
	curl -sf "$far/many/f000000$f.bin" | cmp - "$mnt/f000000$f.bin" ||
		fail "wrong bytes after an error: $f"
done
far_set verify=1

# -- A redirect is not followed, and the log reports it. A request with a
# temporary redirect is repeated.
for code in 301 302 307 308; do
	far_zero
	ends_with code=$code f0000004.bin 'Input/output error'
	again=$(($(far_count gets) > 2))
	case $code in 302 | 307) passes=1 ;; *) passes=0 ;; esac
	expect "$code is asked for again" $again $passes
done
logs "'f0000004.bin' cannot be used: its HTTP status is 302"
end_mount

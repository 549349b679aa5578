#!/bin/sh
# SPDX-License-Identifier: MIT
# A mount of s3:// on Swift's S3 interface, which verifies signatures: odd keys,
# ranges, the message about wrong secrets, and the requests of a remount.
set -u
name=s3-swift
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse
[ -x tests/system/far ] || skip 'built without http and s3'
python=
for p in python3 /usr/bin/python3; do
	"$p" -c 'import swift, boto3' 2>/dev/null && { python=$p; break; }
done
[ -n "$python" ] || skip 'needs python3-swift and python3-boto3'
here=$(dirname "$0")

mkfifo "$work/swift.in"
"$python" "$here/swift_server.py" "$work/swift" <"$work/swift.in" \
	>"$work/swift.out" 2>"$work/swift.err" &
swift_pid=$!
exec 9>"$work/swift.in"
ends_with_test $swift_pid
wait_for 20 test -s "$work/swift.out" ||
	skip "swift does not start: $(tail -n 1 "$work/swift.err")"
port=$(cat "$work/swift.out")
"$python" "$here/swift_fill.py" "$port" "$src" "${SWIFT_KEYS:-40}" ||
	fail 'cannot fill the bucket'

AWS_ACCESS_KEY_ID=test:tester
AWS_SECRET_ACCESS_KEY=testing
swift_mount() {
	start_mount s3://bucket "$work/mnt" --cache "$work/tier:200M" \
		--endpoint-url "http://127.0.0.1:$port" "$@"
}
swift_mount --limit 1M --chunk 1M
scan_through
diff -r "$src" "$mnt" || fail 'the mount differs from what was put'
expect hidden "$(status_field origin_hidden)" 1
expect errors "$(status_field origin_errors)" 0
stop_mount
swift_mount --limit 1M --chunk 1M
scan_through
diff -r "$src" "$mnt" || fail 'a remount differs'
expect 'requests of a remount' "$(status_field origin_requests)" 0
stop_mount

rm -rf "$work/tier"
AWS_SECRET_ACCESS_KEY=wrong "$refrain" mount s3://bucket "$work/mnt" \
	--cache "$work/tier:10M" --endpoint-url "http://127.0.0.1:$port" \
	>"$work/said" 2>&1 && fail 'a wrong secret mounts'
grep -q 'secret key does not match' "$work/said" ||
	fail "says: $(cat "$work/said")"

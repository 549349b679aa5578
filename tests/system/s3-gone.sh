#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A store that disappears: hits continue, other reads fail in time, and
# everything works again when the store is back. GONE_S is the time for which
# the store is away.
set -u
name=s3-gone
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-safety-lib.sh
. "$(dirname "$0")/s3-safety-lib.sh"

s3_mount many --timeout 1 --limit 64K --chunk 64K
scan_through
cat "$mnt/f0000031.bin" >/dev/null || fail 'cannot read'

port=${far##*:}
kill "$far_pid"
wait "$far_pid" 2>/dev/null
gone_end=$(($(date +%s) + ${GONE_S:-1}))
while :; do
	cat "$mnt/f0000031.bin" >/dev/null || fail 'a hit fails without a store'
	timeout 30 cat "$mnt/f0000050.bin" >"$work/one" 2>"$work/said" &&
		fail 'bytes of a store that is not there'
	grep -q 'Input/output error' "$work/said" ||
		fail "without a store: $(cat "$work/said")"
	[ "$(date +%s)" -ge "$gone_end" ] && break
done
rm -f "$work/far.out"
tests/system/far --port "$port" files=64 size=100000 verify=1 >"$work/far.out" \
	</dev/null &
far_pid=$!
ends_with_test $far_pid
wait_for 10 test -s "$work/far.out" || fail 'the store does not come back'
back() {
	[ "$(head -c 100000 "$mnt/f0000050.bin" 2>/dev/null | wc -c)" = 100000 ]
}
wait_for 20 back || fail 'no recovery'
end_mount
! grep -rqaE 'Secret/|token/of' "$work"/daemon.*.err ||
	fail 'a secret is in the log'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# No secret is ever printed: neither in the log at its lowest level, whatever
# the store answers, nor in output of commands, answers of the control socket,
# files of the tier, or command lines. A user name and a password in the URL of
# a source are refused, and the message does not repeat them.
set -u
name=secrets
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'

AWS_SESSION_TOKEN=token-hunter2
export AWS_SESSION_TOKEN
secrets='Secret/AKfar|AKfar.key|hunter2|Signature|Authorization'

# quiet WHAT FILE ...: check that none of the secrets is in the files.
quiet() {
	what=$1
	shift
	! grep -rEa "$secrets" "$@" >"$work/told" 2>/dev/null ||
		fail "$what tells a secret: $(head -n 3 "$work/told")"
}

far_start files=6 size=5000 dirs=2
far_mount() {
	start_mount s3://many "$work/mnt" --cache "$work/tier:20M" \
		--endpoint-url "$far" --log-level info --timeout 1 "$@"
}

# -- A mount that works, fails, and works again -------------------------------
far_mount --log-file "$work/log" --log-json
scan_through
cat "$mnt"/d0000000/*0.bin >"$work/got" || fail 'cannot read'
for fault in busy cut never; do
	far_set $fault=1
	cat "$mnt"/d0000001/f0000003.bin >"$work/got" 2>"$work/err" &&
		fail "read although $fault"
	"$refrain" warm "$mnt" d0000001/f0000004.bin >"$work/out.$fault" \
		2>"$work/err.$fault" && fail "warm although $fault"
	far_set $fault=0
done
wait_for 10 grep -q origin-failed "$work/log" || fail 'no failure in the log'
tr '\0' ' ' <"/proc/$daemon/cmdline" >"$work/cmdline"
"$refrain" status "$mnt" >"$work/status" || fail 'no status'
"$refrain" status --json "$mnt" >"$work/status.json" || fail 'no status'
"$refrain" status --prometheus "$mnt" >"$work/status.prom" || fail 'no status'
stop_mount
quiet 'a mount' "$work/log" "$daemon_err" "$work"/out.* "$work"/err.* \
	"$work/cmdline" "$work"/status* "$work/tier"
note 'a mount that fails and works again'

# -- Keys that the store refuses ----------------------------------------------
secrets=hunter2
AWS_SECRET_ACCESS_KEY=hunter2 "$refrain" mount s3://many "$work/mnt" \
	--foreground --cache "$work/other:20M" --endpoint-url "$far" \
	--log-level info --timeout 2 >"$work/err" 2>&1 &&
	fail 'mounted with a wrong key'
[ -s "$work/err" ] || fail 'nothing is said'
quiet 'a refused key' "$work/err"
note 'keys that are refused'

# -- In the URL of a source ---------------------------------------------------
for url in http://joe:hunter2@127.0.0.1:1/x https://joe:hunter2@localhost/x \
	s3://joe:hunter2@bucket/x ftp://joe:hunter2@host/x \
	"http://127.0.0.1:1/x?X-Amz-Signature=hunter2"; do
	for what in "mount $url $mnt --cache $work/other:1M" "index $url" \
		"load $url --batch 2" "status $url" "warm $url" \
		"refresh $url" "plan $url" "umount $url" "fault $url x"; do
		# shellcheck disable=SC2086 # words
		"$refrain" $what >"$work/err" 2>&1 </dev/null &&
			fail "no error: $what"
		expect "lines of $what" "$(wc -l <"$work/err")" 1
		quiet "$what" "$work/err"
	done
done
for url in http://joe:hunter2@127.0.0.1:1/i \
	"http://127.0.0.1:1/i?X-Amz-Signature=hunter2"; do
	"$refrain" mount http://127.0.0.1:1/x "$mnt" --cache "$work/other:1M" \
		--manifest "$url" >"$work/err" 2>&1 && fail "--manifest $url"
	expect 'lines about --manifest' "$(wc -l <"$work/err")" 1
	quiet 'a secret in --manifest' "$work/err"
done
"$refrain" mount s3://bucket/x "$mnt" --cache "$work/other:1M" \
	--endpoint-url http://joe:hunter2@127.0.0.1:1 >"$work/err" 2>&1 &&
	fail 'an endpoint with a password'
quiet 'an endpoint with a password' "$work/err"
HTTPS_PROXY=http://joe:hunter2@127.0.0.1:1 "$refrain" index \
	https://nowhere.invalid/x/ >"$work/err" 2>&1 && fail 'it is reached'
quiet 'a proxy with a password' "$work/err"
note 'passwords in URLs'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A service for credentials that is slow, and one that is down: a store that
# refuses a token before its end gets the next one; the service is not called
# too often; a remount serves cached files.
set -u
name=s3-creds-service
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-creds-lib.sh
. "$(dirname "$0")/s3-creds-lib.sh"

# give KEY LIFE: let the service give this key, which expires after LIFE
# seconds. With a setting of far_set, the store refuses it earlier.
give() {
	echo "$1 $2" >"$work/given.new"
	mv "$work/given.new" "$work/given"
}
# The service is slow, except the first time, when a mount begins.
cat >"$work/service" <<END
echo >>$work/calls
[ ! -e $work/down ] || exit 1
[ \$(wc -l <$work/calls) -eq 1 ] || sleep 0.5
read -r key life <$work/given
end=\$(date -u -d "+\$life seconds" +%Y-%m-%dT%H:%M:%SZ)
echo "{\"Version\": 1, \"AccessKeyId\": \"AK\$key\",
	\"SecretAccessKey\": \"Secret/AK\$key+key\",
	\"SessionToken\": \"token/of+AK\$key==\",
	\"Expiration\": \"\$end\"}"
END
cat >"$work/.aws/config" <<END
[profile slow]
credential_process = sh $work/service
END

# -- A store that refuses a token before its end, while the service is slow
give 1 3600
start_mount s3://many "$work/mnt" --cache "$work/tier:20M" --profile slow \
	--endpoint-url "$far" --log-level info
scan_through
give 2 3600
far_set only=2
cat "$mnt"/*0.bin >/dev/null || fail 'EACCES while credentials are renewed'
expect 'calls of the service' "$(wc -l <"$work/calls")" 2

# -- A service that is down: it is called every two seconds, not more often
give 3 4
far_set only=3
cat "$mnt/f0000003.bin" >/dev/null || fail 'EACCES while the last key comes'
end_s=$(($(date +%s) + 5))
: >"$work/down"
ended() {
	[ "$(date +%s)" -ge "$end_s" ]
}
wait_for 10 ended
: >"$work/calls"
timeout 5 cat "$mnt"/*1.bin >/dev/null 2>&1 && fail 'read without credentials'
[ "$(wc -l <"$work/calls")" -le 4 ] ||
	fail "the service is called $(wc -l <"$work/calls") times in 5 s"
rm "$work/down"
# The service gives the same key as before, with a longer life.
give 3 3600
timeout $((60 * patience)) cat "$mnt"/f*2.bin >/dev/null || fail 'no recovery'
quiet 'a slow service'
stop_mount

# -- A remount while the service is down serves what is cached, and the rest
# when it is back
: >"$work/down"
start_mount s3://many "$work/mnt" --cache "$work/tier:20M" --profile slow \
	--endpoint-url "$far" --timeout 2
cat "$mnt"/f*2.bin >/dev/null || fail 'no hits without credentials'
cat "$mnt"/f*3.bin >/dev/null 2>&1 && fail 'read without any credentials'
expect 'requests without credentials' "$(status_field origin_requests)" 0
wait_for 10 grep -q 'cannot get credentials: .* exit status that is not 0' \
	"$daemon_err" || fail 'the log does not say why'
rm "$work/down"
wait_for 10 cat "$mnt"/f*3.bin >/dev/null || fail 'no recovery of a remount'
quiet 'a remount without credentials'
stop_mount

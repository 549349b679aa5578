#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A source of credentials that is configured but fails ends the search. The
# mount fails with one line, which says what to do and contains no secret, and
# later sources are not used.
set -u
name=s3-creds-refused
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-creds-lib.sh
. "$(dirname "$0")/s3-creds-lib.sh"

profiles
# A process that closes its output and does not end; the other cases run
# meanwhile.
mkdir "$work/stays"
timeout $((30 * patience)) "$refrain" mount s3://many "$work/stays" --profile \
	stays --cache "$work/stays.tier:1M" --endpoint-url "$far" \
	>"$work/stays.said" 2>&1 &
stays=$!

"$refrain" mount s3://many "$work/mnt" --cache "$work/tier:20M" --profile \
	circle --endpoint-url "$far" >"$work/said" 2>&1 &&
	fail 'a circle mounts'
grep -q 'refers to itself' "$work/said" || fail "says: $(cat "$work/said")"
rm -rf "$work/.aws/credentials" "$work/tier"

far_zero
"$refrain" mount s3://many "$work/mnt" --cache "$work/tier:20M" \
	--endpoint-url "$far" >"$work/said" 2>&1 && fail 'mounts without any'
grep -q 'no credentials found' "$work/said" || fail "says: $(cat "$work/said")"
expect 'services asked without need' "$(far_count services)" 0

# ends_search WANT VARIABLE=VALUE ...: check that a mount with these variables
# fails with one line that contains WANT.
ends_search() {
	want=$1
	shift
	env "$@" "$refrain" mount s3://many "$work/mnt" --cache \
		"$work/tier:20M" --endpoint-url "$far" >"$work/said" 2>&1 &&
		fail "mounts with $*"
	grep -q "$want" "$work/said" || fail "says: $(cat "$work/said")"
	expect "lines of $*" "$(wc -l <"$work/said")" 1
	! grep -Eaq "$secrets" "$work/said" || fail "$*: a secret is told"
}
cat >>"$work/.aws/config" <<'END'
[profile lost-token]
role_arn = arn:aws:iam::1:role/x
web_identity_token_file = /none/lost
[profile lost-source]
role_arn = arn:aws:iam::1:role/x
source_profile = nobody
[profile fails]
credential_process = exit 3
[profile says-nothing]
credential_process = echo '{"Version": 1}'
END
export AWS_EC2_METADATA_SERVICE_ENDPOINT="$far"
ends_search "cannot read '/none/web'" AWS_EC2_METADATA_DISABLED=false \
	AWS_WEB_IDENTITY_TOKEN_FILE=/none/web AWS_ROLE_ARN=arn:aws:iam::1:role/x
ends_search "cannot read '/none/box'" AWS_EC2_METADATA_DISABLED=false \
	AWS_CONTAINER_CREDENTIALS_FULL_URI="$far/container" \
	AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/none/box
ends_search 'must be https or on this machine' \
	AWS_CONTAINER_CREDENTIALS_FULL_URI=http://192.0.2.1/
# Names that begin like an address of this machine. libcurl itself treats all
# names of .localhost as this machine.
ends_search 'must be https or on this machine' \
	AWS_CONTAINER_CREDENTIALS_FULL_URI="http://127.x.localhost:${far##*:}/"
ends_search 'must be https or on this machine' \
	AWS_CONTAINER_CREDENTIALS_FULL_URI="http://127.0.0.1@localhost:1/"
ends_search "cannot read '/none/lost'" AWS_PROFILE=lost-token
ends_search 'check source_profile' AWS_PROFILE=lost-source
ends_search 'exit status that is not 0' AWS_PROFILE=fails
ends_search 'printed no credentials' AWS_PROFILE=says-nothing
ends_search "profile 'typo' has no credentials" AWS_PROFILE=typo
ends_search 'contain a line break' AWS_ACCESS_KEY_ID="AKbroken
" AWS_SECRET_ACCESS_KEY=Secret/AKbroken+key
expect 'services asked beyond a failure' "$(far_count services)" 0
# Services that refuse a request
printf refused >"$work/web.refused"
ends_search 'STS answers with HTTP status 403; check the role' \
	AWS_WEB_IDENTITY_TOKEN_FILE="$work/web.refused" \
	AWS_ROLE_ARN=arn:aws:iam::1:role/x
ends_search "service answers with HTTP status 403; check its auth" \
	AWS_CONTAINER_CREDENTIALS_FULL_URI="$far/container" \
	AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="$work/web.refused"
echo '{"accessToken":"old","expiresAt":"2099-01-01T00:00:00UTC"}' \
	>"$work/.aws/sso/cache/$session.json"
ends_search "SSO answers with HTTP status 401; .*'aws sso login'" \
	AWS_PROFILE=login

wait $stays && fail 'mounts although a credential_process stays'
grep -q 'credential_process failed' "$work/stays.said" ||
	fail "a credential_process that stays: $(cat "$work/stays.said")"

# A daemon that is killed during the search leaves no process behind.
cat >>"$work/.aws/config" <<END
[profile hangs]
credential_process = echo \$\$ >$work/hangs.pid; exec sleep 1000
END
mkdir "$work/hangs"
"$refrain" mount --foreground s3://many "$work/hangs" --profile hangs \
	--cache "$work/hangs.tier:1M" --endpoint-url "$far" &
hangs=$!
wait_for 20 test -s "$work/hangs.pid" || fail 'no credential_process runs'
pid=$(cat "$work/hangs.pid")
! has_ended "$pid" || fail 'the credential_process has ended: nothing is tested'
kill -9 $hangs
wait_for 20 has_ended "$pid" || fail 'a credential_process outlives the daemon'

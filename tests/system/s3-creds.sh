#!/bin/sh
# SPDX-License-Identifier: MIT
# Where credentials come from, and their renewal, all of it from stand-ins. No
# secret of theirs reaches a log, the status, a command line or a tier.
set -u
name=s3-creds
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'

far_start files=40 size=10000
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
mkdir -p "$work/.aws/sso/cache"
AWS_ENDPOINT_URL_STS=$far
AWS_ENDPOINT_URL_SSO=$far/
export AWS_ENDPOINT_URL_STS AWS_ENDPOINT_URL_SSO

# The secret keys, and the tokens: of sessions, a login, a container, the web.
secrets='Secret/|token/of|sso-token|container-token|web[+]id|ASIA'

# quiet WHAT: all that the mount says and keeps, and the command line.
quiet() {
	"$refrain" status "$mnt" >"$work/told" || fail "$1: no status"
	{
		"$refrain" status --json "$mnt"
		"$refrain" status --prometheus "$mnt"
		tr '\0' ' ' <"/proc/$daemon/cmdline"
	} >>"$work/told"
	[ -s "$work/told" ] || fail "$1: nothing to look at"
	! grep -rEaq "$secrets" "$work/told" "$daemon_err" "$work/tier" ||
		fail "$1: a secret is told"
}

# reads WHAT OPTION ...: a mount with the credentials of the moment reads all.
reads() {
	what=$1
	shift
	start_mount s3://many "$work/mnt" --cache "$work/tier:20M" \
		--endpoint-url "$far" --log-level info "$@"
	scan_through
	[ "$(cat "$mnt"/*.bin | wc -c)" = 400000 ] || fail "$what: cannot read"
	quiet "$what"
	stop_mount
	rm -rf "$work/tier"
}

cat >"$work/.aws/credentials" <<'END'
[default]
aws_access_key_id = AKprofile
aws_secret_access_key = Secret/AKprofile+key
END
cat >"$work/.aws/config" <<END
[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = default
region = eu-north-7
[profile process]
credential_process = cat $work/process.json
[profile stays]
credential_process = exec sleep $((60 * patience)) >&-
[profile login]
sso_session = s
sso_account_id = 1
sso_role_name = r
[sso-session s]
sso_region = eu-west-1
sso_start_url = https://unused/
[profile circle]
role_arn = arn:aws:iam::1:role/x
source_profile = circle2
[profile circle2]
role_arn = arn:aws:iam::1:role/x
source_profile = circle
END
cat >"$work/process.json" <<'END'
{"Version": 1, "AccessKeyId": "AKproc",
 "SecretAccessKey": "Secret/AKproc+key"}
END
session=$(printf s | sha1sum | cut -d ' ' -f 1)
echo '{"accessToken":"sso-token","expiresAt":"2099-01-01T00:00:00Z"}' \
	>"$work/.aws/sso/cache/$session.json"

# A process that closes its output and does not end; the others go on meanwhile.
mkdir "$work/stays"
timeout $((30 * patience)) "$refrain" mount s3://many "$work/stays" --profile \
	stays --cache "$work/stays.tier:1M" --endpoint-url "$far" \
	>"$work/stays.said" 2>&1 &
stays=$!

reads 'the default profile'
# As AWS' tools read them: indented, in either case, with a colon, in quotes.
printf '[default]\r\n  AWS_Access_Key_ID: AKprofile\r\n\r\n%s\r\n' \
	'  aws_secret_access_key = Secret/AKprofile+key' >"$work/odd"
AWS_SHARED_CREDENTIALS_FILE=$work/odd reads 'a profile of odd form'
cat >"$work/odd" <<'END'
[profile "two words"]
s3 =
  aws_access_key_id = nested
aws_access_key_id = AKprofile
aws_secret_access_key = Secret/AKprofile+key
END
AWS_CONFIG_FILE=$work/odd reads 'a profile in quotes' --profile 'two words'
AWS_ENDPOINT_URL_STS=$far/sts/ reads 'a role' --profile role
# Nobody is asked beyond this machine, even if the variable is not respected.
export https_proxy=http://127.0.0.1:1
AWS_ENDPOINT_URL=$far AWS_ENDPOINT_URL_STS='' \
	reads 'a role by the endpoint of all' --profile role
AWS_ENDPOINT_URL=$far/ AWS_ENDPOINT_URL_SSO='' \
	reads 'an SSO login by the endpoint of all' --profile login
unset https_proxy
# Their clock, and ours, may be a day behind: what they issue lives an hour.
for skew in -86400 86400; do
	far_set expire_s=3600 skew_s=$skew
	reads "a role, by a clock $skew s from ours" --profile role
done
far_set skew_s=0
reads 'credential_process' --profile process
reads 'an SSO login' --profile login
"$refrain" mount s3://many "$work/mnt" --cache "$work/tier:20M" --profile \
	circle --endpoint-url "$far" >"$work/said" 2>&1 &&
	fail 'a circle mounts'
grep -q 'refers to itself' "$work/said" || fail "says: $(cat "$work/said")"
rm -rf "$work/.aws/credentials" "$work/tier"

printf 'web+id' >"$work/web.token"
AWS_WEB_IDENTITY_TOKEN_FILE=$work/web.token AWS_ROLE_ARN=arn:aws:iam::1:role/x \
	reads 'a web identity'
printf 'container-token\n' >"$work/container.token"
AWS_CONTAINER_CREDENTIALS_FULL_URI=$far/container \
	AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$work/container.token \
	reads 'a container'
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://localhost:${far##*:}/container \
	AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$work/container.token \
	reads 'a container at localhost'
AWS_EC2_METADATA_DISABLED=false AWS_EC2_METADATA_SERVICE_ENDPOINT=$far/ \
	reads 'instance metadata'
far_zero
"$refrain" mount s3://many "$work/mnt" --cache "$work/tier:20M" \
	--endpoint-url "$far" >"$work/said" 2>&1 && fail 'mounts without any'
grep -q 'no credentials found' "$work/said" || fail "says: $(cat "$work/said")"
expect 'services asked without need' "$(far_count services)" 0
# A place that is configured and fails ends the search, and the message says
# which; what follows it is not asked.
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
# Names that begin as an address of this machine does. libcurl itself takes
# all of .localhost for this machine.
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
# Services that refuse what they are given
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
unset AWS_EC2_METADATA_SERVICE_ENDPOINT
far_zero
far_set verify=0
reads 'no credentials' --no-sign-request
expect 'services asked for a public bucket' "$(far_count services)" 0
far_set verify=1

# -- Credentials that live two seconds (EXPIRE_S), under load
lives_s=${EXPIRE_S:-2}
far_set "expire_s=$lives_s" delay_ms=100 "files=$((lives_s * 20))"
AWS_CONTAINER_CREDENTIALS_FULL_URI=$far/container
AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$work/container.token
export AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
start_mount s3://many "$work/mnt" --cache "$work/tier:20M" \
	--endpoint-url "$far" --log-level info
scan_through
for f in "$mnt"/*.bin; do
	cat "$f" >/dev/null || fail "EIO while credentials expire: $f"
done
renewed() {
	[ "$(status_field origin_renewed)" -ge 2 ]
}
wait_for $((18 + lives_s)) renewed || fail 'credentials are not renewed'
wait_for 10 grep -q 'credentials for the source were renewed' \
	"$daemon_err" ||
	fail 'the log has no renewal'
expect failures "$(status_field origin_failures)" 0
quiet 'renewed credentials'
stop_mount

# -- A store that refuses a token before its end, while the service is slow
unset AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
rm -rf "$work/tier"
far_set delay_ms=0 files=40
# credentials_of LIFE STATED: accepted for LIFE seconds, said to live STATED.
credentials_of() {
	id=ASIA$(($(date +%s%3N) + $1 * 1000))X
	expires=$(date -u -d "+$2 seconds" +%Y-%m-%dT%H:%M:%SZ)
	cat >"$work/new.json" <<-END
		{"Version": 1, "AccessKeyId": "$id",
		 "SecretAccessKey": "Secret/$id+key",
		 "SessionToken": "token/of+$id==", "Expiration": "$expires"}
	END
	mv "$work/new.json" "$work/process.json"
}
cat >"$work/service" <<END
echo >>$work/calls
[ -e $work/down ] && exit 1
[ \$(wc -l <$work/calls) -eq 1 ] || sleep 0.5
cat $work/process.json
END
cat >>"$work/.aws/config" <<END
[profile slow]
credential_process = sh $work/service
END
ended() {
	[ "$(date +%s%3N)" -gt "$end_ms" ]
}
credentials_of 3 3600
end_ms=$(($(date +%s%3N) + 3000))
start_mount s3://many "$work/mnt" --cache "$work/tier:20M" --profile slow \
	--endpoint-url "$far" --log-level info
scan_through
wait_for 10 ended
credentials_of 8 6
cat "$mnt"/*0.bin >/dev/null || fail 'EACCES while credentials are renewed'
expect 'calls of the service' "$(wc -l <"$work/calls")" 2

# -- A service that is down: it is called every two seconds, not more often
: >"$work/down"
end_ms=$(($(date +%s%3N) + 7000))
wait_for 10 ended
: >"$work/calls"
timeout 5 cat "$mnt"/*1.bin >/dev/null 2>&1 && fail 'read without credentials'
[ "$(wc -l <"$work/calls")" -le 4 ] ||
	fail "the service is called $(wc -l <"$work/calls") times in 5 s"
rm "$work/down"
credentials_of 3600 3600
wait_for 10 cat "$mnt"/f*2.bin >/dev/null || fail 'no recovery'
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

wait $stays && fail 'mounts although a credential_process stays'
grep -q 'credential_process failed' "$work/stays.said" ||
	fail "a credential_process that stays: $(cat "$work/stays.said")"

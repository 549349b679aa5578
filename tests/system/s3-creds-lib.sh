# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of credentials; sourced after far-lib.sh. Starts a store of 40 files
# without known keys; all services are stand-ins.
far_start files=40 size=10000
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
mkdir -p "$work/.aws/sso/cache"
AWS_ENDPOINT_URL_STS=$far
AWS_ENDPOINT_URL_SSO=$far/
export AWS_ENDPOINT_URL_STS AWS_ENDPOINT_URL_SSO

# Patterns of the secret keys and of the tokens: of sessions, a login, a
# container, and the web.
secrets='Secret/|token/of|sso-token|container-token|web[+]id|ASIA'

# quiet WHAT: check that output and files of the mount, and its command line,
# contain no secret.
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

# reads WHAT OPTION ...: check that a mount with the present credentials can
# read everything.
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

# profiles: write some profiles, and the files that they name.
profiles() {
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
}

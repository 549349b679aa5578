# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests with the stand-in for a store; sourced after lib.sh. Nothing here
# leaves this machine.
AWS_EC2_METADATA_DISABLED=true
HOME=$work
AWS_ACCESS_KEY_ID=AKfar
AWS_SECRET_ACCESS_KEY=Secret/AKfar+key
# A mount that names no endpoint finds nobody, and none beyond this machine.
AWS_ENDPOINT_URL=http://127.0.0.1:1
AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL
AWS_ENDPOINT_URL_SSO=$AWS_ENDPOINT_URL
export AWS_EC2_METADATA_DISABLED HOME AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY \
	AWS_ENDPOINT_URL AWS_ENDPOINT_URL_STS AWS_ENDPOINT_URL_SSO
unset AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_CA_BUNDLE \
	AWS_ENDPOINT_URL_S3 AWS_SESSION_TOKEN http_proxy https_proxy \
	all_proxy no_proxy HTTPS_PROXY ALL_PROXY NO_PROXY

# far_start SETTING ...: the stand-in; $far is its URL.
far_start() {
	mkfifo "$work/far.in"
	tests/system/far "$@" verify=1 >"$work/far.out" <"$work/far.in" &
	far_pid=$!
	exec 9>"$work/far.in"
	wait_for 10 test -s "$work/far.out" || fail 'the stand-in does not start'
	far=http://127.0.0.1:$(cat "$work/far.out")
	ends_with_test $far_pid
}

# far_set NAME=VALUE ...
far_set() {
	for s; do
		curl -sf "$far/-/set?$s" >/dev/null || fail "cannot set $s"
	done
}

# far_count NAME: of its counters.
far_count() {
	curl -sf "$far/-/stats" | awk -v n="$1" '$1 == n { print $2 }'
}

far_zero() {
	curl -sf "$far/-/zero" >/dev/null
}

# far_put BUCKET/KEY TEXT: the key as it stands in an URL.
far_put() {
	curl -sf --path-as-is -X PUT --data-binary "$2" "$far/$1" ||
		fail "cannot put $1"
}

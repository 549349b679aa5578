#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Credentials from profiles, as AWS' tools read them: keys, roles, a process, an
# SSO login. None of their secrets reaches a log, the status, a command line or
# a tier.
set -u
name=s3-creds-profiles
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-creds-lib.sh
. "$(dirname "$0")/s3-creds-lib.sh"

profiles
reads 'the default profile'
# The tools of AWS accept all of these: indented, in either case, with a colon,
# in quotes.
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
# No request leaves this machine, even if the variable is not respected.
export https_proxy=http://127.0.0.1:1
AWS_ENDPOINT_URL=$far AWS_ENDPOINT_URL_STS='' \
	reads 'a role by the endpoint of all' --profile role
AWS_ENDPOINT_URL=$far/ AWS_ENDPOINT_URL_SSO='' \
	reads 'an SSO login by the endpoint of all' --profile login
unset https_proxy
# The clock of the service, or of this machine, may be a day behind; credentials
# that the service issues are valid for an hour.
for skew in -86400 86400; do
	far_set expire_s=3600 skew_s=$skew
	reads "a role, by a clock $skew s from ours" --profile role
done
far_set skew_s=0
reads 'credential_process' --profile process
reads 'an SSO login' --profile login

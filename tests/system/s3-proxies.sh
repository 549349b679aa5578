#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Requests to a store use the configured proxies, except for hosts in no_proxy.
# Requests for metadata never use a proxy.
set -u
name=s3-proxies
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-safety-lib.sh
. "$(dirname "$0")/s3-safety-lib.sh"

second_far
AWS_EC2_METADATA_DISABLED=false
AWS_EC2_METADATA_SERVICE_ENDPOINT=$far
http_proxy=$second
export AWS_EC2_METADATA_SERVICE_ENDPOINT http_proxy
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
for no_proxy in '' 127.0.0.1; do
	export no_proxy
	before=$(second_count lists)
	s3_mount many
	scan_through
	end_mount
	expect "lists by the proxy, no_proxy '$no_proxy'" \
		"$(($(second_count lists) - before > 0))" \
		"$([ "$no_proxy" ] && echo 0 || echo 1)"
done
expect 'metadata by a proxy' "$(second_count services)" 0
unset http_proxy no_proxy
! grep -rqaE 'Secret/|token/of' "$work"/daemon.*.err ||
	fail 'a secret is in the log'

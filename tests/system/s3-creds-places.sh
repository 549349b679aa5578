#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Credentials from a web identity, a container and the instance, and a public
# bucket that needs none. None of their secrets reaches a log, the status, a
# command line or a tier.
set -u
name=s3-creds-places
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-creds-lib.sh
. "$(dirname "$0")/s3-creds-lib.sh"

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
far_set verify=0
reads 'no credentials' --no-sign-request
expect 'services asked for a public bucket' "$(far_count services)" 0
far_set verify=1

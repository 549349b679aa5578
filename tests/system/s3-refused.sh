#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A wrong bucket, region, key, prefix, host or server: the start fails in one
# line, within 5 seconds, and the line says what to do.
set -u
name=s3-refused
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'

# refused WANTED SOURCE OPTION ...: $alone goes before the command.
alone=
place=$work
refused() {
	want=$1
	shift
	begin=$(date +%s%3N)
	# shellcheck disable=SC2086 # words
	$alone "$refrain" mount "$@" "$place/mnt" --cache "$place/tier:10M" \
		>"$place/said" 2>&1 && fail "mounted: $*"
	took=$(($(date +%s%3N) - begin))
	note "$took ms: $*"
	expect "lines of $*" "$(wc -l <"$place/said")" 1
	grep -qE "$want" "$place/said" ||
		fail "$* says: $(cat "$place/said"); not $want"
	# 5 seconds, and what a busy machine adds.
	[ $took -le $((20000 * patience)) ] || fail "$* takes $took ms"
	[ ! -e "$place/tier" ] || fail "$* leaves a tier"
}

# One that takes a while has a place of its own, beside the others.
mkdir "$work/2" "$work/2/mnt"
far_start files=10 size=1000 dirs=2
at="--endpoint-url $far"
(
	place=$work/2
	refused 'does not answer in time|no answer within 4.5 s' s3://many \
		--endpoint-url "https://${far#*//}"
) &
waits=$!
# shellcheck disable=SC2086 # words
{
	refused 'NoSuchBucket: .*check its name' s3://none $at
	refused 'no keys below this prefix; check it' s3://many/none $at
	refused '3 to 63 characters; write s3://' s3://ab $at
	refused 'has lower-case letters, digits' s3://a_bucket $at
	refused 'has lower-case letters, digits' s3://Bucket/x $at
	refused 'begins and ends with a letter' s3://-bucket $at
	refused "has no '..'" s3://a..bucket/x $at
	AWS_SECRET_ACCESS_KEY=wrong \
		refused 'secret key does not match.*check the cred' \
		s3://many $at
	AWS_ACCESS_KEY_ID=nobody \
		refused 'not know the access key.*check the cred' s3://many $at
	far_set no_list=1
	refused 'AccessDenied: .*--profile.*--manifest' s3://many $at
	far_set no_list=0 move=1
	start_mount s3://many "$work/mnt" $at --cache "$work/tier:10M" \
		--region wrong-1
	scan_through # the server names the right one
	stop_mount
	rm -rf "$work/tier"
	far_set move=0 never=1
	refused 'does not answer|no answer within 4.5 s' s3://many $at
	far_set never=0 truncate_xml=1
	refused 'listing that cannot be parsed; check' s3://many $at
	far_set truncate_xml=0 no_size=1
	refused 'keys without their sizes; .*--endpoint-url.*--manifest' \
		s3://many $at
	far_set no_size=0
}
refused 'cannot connect.*check the host and the port' s3://many \
	--endpoint-url http://127.0.0.1:1
refused 'http\(s\)://HOST' s3://many --endpoint-url 127.0.0.1:1
refused "no profile|has no credentials|profile 'none'" s3://many \
	--endpoint-url "$far" --profile none
if unshare -n true 2>/dev/null; then
	# Nobody can be asked for an address there.
	alone='unshare -n'
	refused 'resolve the host of.*check its name' https://no.such.host/x/
fi
wait $waits || exit 1

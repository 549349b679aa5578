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

# mounts_not SOURCE OPTION ...: check that the mount fails. "$place/said" has
# its message, and $took is the time in ms. $alone precedes the command.
alone=
place=$work
mounts_not() {
	begin=$(date +%s%3N)
	# shellcheck disable=SC2086 # words
	$alone "$refrain" mount "$@" "$place/mnt" --cache "$place/tier:10M" \
		>"$place/said" 2>&1 && fail "mounted: $*"
	took=$(($(date +%s%3N) - begin))
}

# in_time: was the refusal fast enough? A refusal that waits for nothing shows
# how busy the machine is. It may be busier for a moment.
in_time() {
	for _ in 1 2 3 4; do
		[ $took -gt $((5000 * patience)) ] || return 0
		late=$took
		mounts_not s3://many --endpoint-url http://127.0.0.1:1
		note "$late ms: $*; without waiting: $took ms"
		[ $late -gt $((5000 * patience + took)) ] || return 0
		mounts_not "$@"
	done
	fail "$* takes $took ms"
}

# refused WANTED SOURCE OPTION ...
refused() {
	want=$1
	shift
	mounts_not "$@"
	note "$took ms: $*"
	expect "lines of $*" "$(wc -l <"$place/said")" 1
	grep -qE "$want" "$place/said" ||
		fail "$* says: $(cat "$place/said"); not $want"
	in_time "$@"
	[ ! -e "$place/tier" ] || fail "$* leaves a tier"
}

# A mount that takes a while to fail runs in a place of its own, at the same
# time as the others.
mkdir "$work/2" "$work/2/mnt"
far_start files=10 size=1000 dirs=2
at="--endpoint-url $far"
(
	place=$work/2
	refused '(not answer in time|within 4.5 s); check the host' s3://many \
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
	far_set no_list=0
	for move in 1 2; do
		far_set move=$move
		start_mount s3://many "$work/mnt" $at \
			--cache "$work/tier:10M" --region wrong-1
		scan_through # the server names the right region
		stop_mount
		rm -rf "$work/tier"
	done
	far_set move=0 never=1
	refused '(not answer in time|within 4.5 s); check the host' \
		s3://many $at
	far_set never=0 truncate_xml=1
	refused 'listing that cannot be parsed; check' s3://many $at
	far_set truncate_xml=0 no_size=1
	refused 'keys without their sizes; .*--endpoint-url.*--manifest' \
		s3://many $at
	far_set no_size=0
	# An index that cannot be made, and one whose files cannot be requested.
	"$refrain" index s3://many $at -o "$work/index" || fail 'no index'
	curl -sf -H Expect: -T "$work/index" "$far/meta/names" ||
		fail 'cannot put the index'
	far_set busy=1 retry_after=3600
	refused "manifest 's3://meta/names'.* is busy.*; try again later" \
		s3://many $at --manifest s3://meta/names
	refused 'manifest.* is busy .*; try again later' \
		s3://many $at --manifest "$work/index"
	far_set busy=0 never=1
	refused '(not answer in time|within 4.5 s); check the host' \
		s3://many $at --manifest s3://meta/names
	far_set never=0
}
refused 'cannot connect.*check the host and the port' s3://many \
	--endpoint-url http://127.0.0.1:1
refused 'http\(s\)://HOST' s3://many --endpoint-url 127.0.0.1:1
refused "no profile|has no credentials|profile 'none'" s3://many \
	--endpoint-url "$far" --profile none
if unshare -n true 2>/dev/null; then
	# No address can be looked up without a network.
	alone='unshare -n'
	refused 'resolve the host of.*check its name' https://no.such.host/x/
fi
if command -v python3 >/dev/null &&
	unshare -nm mount --bind /dev/null /etc/resolv.conf 2>/dev/null; then
	# A server for names that never answers.
	echo 'nameserver 127.0.0.1' >"$work/resolv.conf"
	cat >"$work/deaf" <<'END'
import fcntl, socket, struct, subprocess, sys

conf, *command = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack('16sH14x', b'lo', IFF_UP))
s.bind(('127.0.0.1', 53))
subprocess.check_call(['mount', '--bind', conf, '/etc/resolv.conf'])
sys.exit(subprocess.call(command))
END
	alone="unshare -nm python3 $work/deaf $work/resolv.conf"
	refused '(in time|within 4.5 s|resolve the host of.*); check' \
		https://no.such.host/x/
fi
wait $waits || exit 1

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The memory of a mount of s3:// with 128 requests at a time: outside of
# staging, it is at most 64 MiB more than that of a mount of the same files on a
# disk that is as slow.
set -u
name=s3-memory
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'

files=${FILES:-384}
# peak WHAT SOURCE OPTION ...: set $peak to the maximum of the memory outside of
# staging.
peak() {
	what=$1
	shift
	source=$1
	shift
	start_mount "$source" "$work/mnt" --cache "$work/tier:1G" "$@"
	scan_through
	"$reader" "$mnt" --threads 128 >"$work/out" || fail "$what: cannot read"
	rss=$(awk '$1 == "VmHWM:" { print $2 * 1024 }' \
		"/proc/$daemon/status")
	staging=$(status_field staging_peak_bytes)
	peak=$((rss - staging))
	note "$what: $((rss >> 20)) MiB, $((staging >> 20)) of them staging"
	[ "$staging" -ge $((32 * 110000)) ] ||
		fail "$what: never many at a time"
	stop_mount
	rm -rf "$work/tier"
}
far_start "files=$files" size=110000 delay_ms=100
i=0
while [ $i -lt "$files" ]; do
	head -c 110000 /dev/zero >"$src/f$i"
	i=$((i + 1))
done
peak posix "$src" --fault delay=100ms
posix=$peak
peak s3 s3://many --endpoint-url "$far"
[ "$peak" -le $((posix + (64 << 20))) ] ||
	fail "s3 takes $((peak >> 20)) MiB, posix $((posix >> 20))"

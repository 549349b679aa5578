#!/bin/sh
# SPDX-License-Identifier: MIT
# Rare answers of a store, with names and caches that are rare, too: every one
# ends in right bytes or in the error that it stands for, and the log says why.
set -u
name=s3-answers
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'

s3_mount() {
	what=$1
	shift
	start_mount "s3://$what" "$work/mnt" --endpoint-url "$far" "$@"
}

end_mount() {
	stop_mount
	rm -rf "$work/tier"
}

# logs TEXT: the log has it, or gets it soon.
logs() {
	wait_for 10 grep -q "$1" "$daemon_err" || fail "the log lacks: $1"
}

far_start files=40 size=100000

# -- One answer about an object each
s3_mount many --cache "$work/tier:20M" --timeout 2
scan_through
# ends_with SETTING FILE ERROR: until the setting is back.
ends_with() {
	far_set "$1"
	cat "$mnt/$2" >"$work/got" 2>"$work/said" && fail "$1: no error"
	[ ! -s "$work/got" ] || fail "$1: bytes were served"
	grep -q "$3" "$work/said" || fail "$1: $(cat "$work/said")"
	far_set "${1%%=*}=0"
}
ends_with archived=1 f0000001.bin 'Permission denied'
ends_with code=403 f0000002.bin 'Permission denied'
ends_with code=400 f0000003.bin 'Input/output error'
ends_with no_length=1 f0000005.bin 'Input/output error'
logs "'f0000001.bin' cannot be used: the object is archived"
logs "'f0000002.bin' cannot be used: these credentials do not permit"
logs "'f0000003.bin' cannot be used: its HTTP status is 400"
# An answer is not asked for again but by the kernel, which does so once; a
# failure is.
far_zero
ends_with code=403 f0000006.bin 'Permission denied'
[ "$(far_count gets)" -le 2 ] || fail "$(far_count gets) GETs end with 403"
for code in 500 502 504; do
	far_zero
	ends_with code=$code f0000007.bin 'Input/output error'
	[ "$(far_count gets)" -gt 2 ] || fail "$code is not asked for again"
done
# Each is as it was before.
far_set verify=0
for f in 1 2 3 6 7; do
	curl -sf "$far/many/f000000$f.bin" | cmp - "$mnt/f000000$f.bin" ||
		fail "wrong bytes after an error: $f"
done
far_set verify=1

# -- All requests are counted
far_set busy=0.2 cut=0.2
cat "$mnt"/*.bin >"$work/all" || fail 'EIO'
far_set busy=0 cut=0
end_mount
far_zero
far_set busy=0.3
s3_mount many --cache "$work/tier:20M" --revalidate 1
scan_through
cat "$mnt"/*.bin | cmp - "$work/all" || fail 'other bytes'
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
far_set busy=0
ls "$mnt/none" 2>/dev/null && fail 'a name from nowhere'
expect 'requests that were counted' "$(status_field origin_requests)" \
	"$(far_count requests)"
end_mount

# -- A server that waits for the acknowledgement of its headers gets it at once.
# curl's comes after 40 ms
far_set nagle=1 files=64 size=20000
s3_mount many --cache "$work/tier:20M"
scan_through
begin=$(date +%s%3N)
cat "$mnt"/*.bin >"$work/got" || fail EIO
took=$(($(date +%s%3N) - begin))
far_set verify=0
begin=$(date +%s%3N)
curl -sf "$far/many/f00000[00-63].bin" >"$work/all64" || fail 'curl fails'
curl_took=$(($(date +%s%3N) - begin))
cmp "$work/got" "$work/all64" || fail 'other bytes'
[ $((2 * took)) -lt $curl_took ] ||
	fail "64 files take $took ms, curl $curl_took ms"
far_set nagle=0 files=40 size=100000 verify=1
end_mount

# -- Retry-After: nothing is asked before
s3_mount many --cache "$work/tier:20M"
scan_through
far_zero
far_set busy=1 retry_after=3
begin=$(date +%s%3N)
cat "$mnt/f0000000.bin" >"$work/got" &
reading=$!
refused() {
	[ "$(far_count busy)" -gt 0 ]
}
wait_for 10 refused || fail 'nothing is asked'
far_set busy=0 retry_after=0
wait $reading || fail 'EIO although the store came back'
took=$(($(date +%s%3N) - begin))
expect 'GETs of one that was refused' "$(far_count gets)" \
	$(($(far_count busy) + 1))
[ $took -ge 3000 ] || fail "asked again after $took ms, not 3 s"

# -- A redirect is not followed, and the log says that it was one. A temporary
# one is asked for again.
for code in 301 302 307 308; do
	far_zero
	ends_with code=$code f0000004.bin 'Input/output error'
	again=$(($(far_count gets) > 2))
	case $code in 302 | 307) passes=1 ;; *) passes=0 ;; esac
	expect "$code is asked for again" $again $passes
done
logs "'f0000004.bin' cannot be used: its HTTP status is 302"
end_mount

# -- A start while the store is busy says so
far_set busy=1
"$refrain" mount s3://many "$work/mnt" --endpoint-url "$far" --cache \
	"$work/tier:1M" >"$work/said" 2>&1 && fail 'mounted'
grep -q 'the server is busy' "$work/said" || fail "says: $(cat "$work/said")"
far_set busy=0

# -- A start goes on when the store fails for a moment only
asked() {
	[ "$(far_count requests)" -gt 0 ]
}
far_zero
far_set flood=502
"$refrain" mount s3://many "$work/mnt" --endpoint-url "$far" --cache \
	"$work/tier:1M" >"$work/said" 2>&1 &
starting=$!
wait_for 10 asked || fail 'nothing is asked'
far_set flood=0
wait $starting || fail "one 502 ends a start: $(cat "$work/said")"
"$refrain" umount "$work/mnt" || fail 'cannot unmount'
rm -rf "$work/tier"

# -- Caches of nothing: all passes through, and each byte is fetched once
far_zero
s3_mount many --cache "$work/tier:64K" --limit 64K --chunk 64K --staging 256K
scan_through
cat "$mnt"/*.bin | cmp - "$work/all" || fail 'other bytes without a cache'
expect 'bytes from the store' "$(status_field origin_bytes)" 4000000
end_mount

# -- The first bytes, long before the last
far_set files=1 size=7000000 rate=100000
s3_mount many --cache "$work/tier:64M" --limit 8M
scan_through
far_zero
dd if="$mnt/f0000000.bin" of="$work/got" bs=4096 count=1 iflag=direct \
	2>/dev/null || fail 'cannot read'
expect 'bytes that were read' "$(wc -c <"$work/got")" 4096
expect GETs "$(far_count gets)" 1
[ "$(far_count bytes)" -lt 3500000 ] || fail 'the read waited for the item'
expect entries "$(status_field entries)" 0
far_set rate=0
end_mount

# -- Marks of directories, and a prefix with odd characters
far_put odd/empty/ ''
far_put odd/both file
far_put odd/both/ ''
far_put "odd/p%20%25%2B~%27%C3%A4&=/deep/x" inside
far_put "odd/p%20%25%2B~%27%C3%A4&=x" outside
s3_mount odd --cache "$work/tier:1M"
scan_through
[ -d "$mnt/empty" ] || fail 'a directory without files is not shown'
[ -d "$mnt/both" ] || fail 'a file hides a directory'
expect 'names in an empty directory' "$(find "$mnt/empty" | wc -l)" 1
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
[ -d "$mnt/both" ] || fail 'a refresh shows the file'
[ -d "$mnt/empty" ] || fail 'a refresh hides a directory'
curl -sf -X DELETE "$far/odd/both/"
curl -sf -X DELETE "$far/odd/empty/"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
expect 'a file without a mark beside it' "$(cat "$mnt/both")" file
[ ! -e "$mnt/empty" ] || fail 'a directory that is gone'
end_mount
s3_mount "odd/p %+~'ä&=/" --cache "$work/tier:1M" --timeout 2
scan_through
expect 'files below a prefix' "$(find "$mnt" -type f)" "$mnt/deep/x"
expect 'one of them' "$(cat "$mnt/deep/x")" inside

# -- What cannot be listed any more is not taken for deleted
for refusal in no_list=1 busy=1 never=1; do
	far_set "$refusal"
	timeout $((60 * patience)) "$refrain" refresh "$mnt" >"$work/said" 2>&1
	far_set "${refusal%%=*}=0"
	expect "$refusal: names" "$(find "$mnt" -type f | wc -l)" 1
	expect "$refusal: bytes" "$(cat "$mnt/deep/x")" inside
done
curl -sf -X DELETE "$far/odd/p%20%25%2B~%27%C3%A4&=/deep/x"
"$refrain" refresh "$mnt" >"$work/said" 2>&1
expect 'a cached file of a prefix that is empty now' \
	"$(cat "$mnt/deep/x")" inside
stop_mount

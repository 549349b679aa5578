#!/bin/sh
# SPDX-License-Identifier: MIT
# A mount of s3:// on the stand-in for a store: names, bytes, requests, faults.
set -u
name=s3
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires root fuse curl mount
[ -x tests/system/far ] || skip 'built without http and s3'

far_start files=300 size=110000 dirs=3
s3_mount() {
	what=$1
	shift
	start_mount "s3://$what" "$work/mnt" --cache "$work/tier:200M" \
		--endpoint-url "$far" "$@"
}

# same KEY: the mount has the bytes of the store.
same() {
	curl -sf "$far/many/$1" -o "$work/want" || fail "no object: $1"
	cmp "$work/want" "$mnt/$1" || fail "wrong bytes: $1"
}

# -- Names and bytes, and what they cost
s3_mount many
scan_through
expect files "$(find "$mnt" -type f | wc -l)" 300
expect size "$(stat -c %s "$mnt/d0000001/f0000123.bin")" 110000
expect 'list requests' "$(far_count lists)" 2
far_zero
cat "$mnt"/*/* >"$work/all" || fail 'cannot read'
expect bytes "$(wc -c <"$work/all")" 33000000
expect 'GETs for 300 files' "$(far_count gets)" 300
expect HEADs "$(far_count heads)" 0
expect requests "$(status_field origin_requests)" 302
expect 'bytes sent' "$(status_field origin_bytes)" 33000000
far_set verify=0
same d0000000/f0000000.bin
same d0000002/f0000299.bin
far_set verify=1
drop_caches
far_zero
cat "$mnt"/*/* | cmp - "$work/all" || fail 'other bytes the second time'
expect 'requests of a warm epoch' "$(far_count gets)" 0
stop_mount

# -- A remount asks nothing
far_zero
s3_mount many
scan_through
cat "$mnt"/*/* | cmp - "$work/all" || fail 'other bytes after a remount'
expect 'requests of a remount' "$(status_field origin_requests)" 0
stop_mount

# -- Another store with a bucket of that name does not get this cache
"$refrain" mount s3://many "$work/mnt" --cache "$work/tier:200M" \
	--endpoint-url "$far/other" >"$work/said" 2>&1 &&
	fail "another store's cache is used"
expect 'lines about another store' "$(wc -l <"$work/said")" 1
grep -q "belongs to dataset 's3=$far/many'; use another" "$work/said" ||
	fail "says: $(cat "$work/said")"
rm -rf "$work/tier"

# -- Keys: odd ones, and those that cannot be paths
far_put odd/plain x
far_put 'odd/a%2Bb%20%7E%25%26%27%3D' y
far_put 'odd/%C3%A4%E6%BC%A2/%F0%9F%98%80' z
far_put odd/a//b hidden
far_put odd/x/../y hidden
far_put odd/d shadowed
far_put odd/d/e shown
far_put odd/mark/ ''
s3_mount odd
scan_through
expect 'an odd key' "$(cat "$mnt/a+b ~%&'=")" y
expect 'a deep one' "$(cat "$mnt/ä漢/😀")" z
expect 'a directory hides a file' "$(cat "$mnt/d/e")" shown
expect hidden "$(status_field origin_hidden)" 2
wait_for 10 grep -q 'cannot be a path' "$daemon_err" || fail 'no hidden keys'
expect 'lines about hidden keys' \
	"$(grep -c 'cannot be a path' "$daemon_err")" 1

# -- Refresh finds what is new, changed, gone
far_put odd/new n
far_put odd/plain changed
curl -sf -X DELETE "$far/odd/d/e"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
expect new "$(cat "$mnt/new")" n
expect changed "$(cat "$mnt/plain")" changed
expect 'the file again' "$(cat "$mnt/d")" shadowed

# An overwrite between listing and reading is never a mixture.
far_put odd/late first
"$refrain" refresh "$mnt" >/dev/null
far_put odd/late second
got=$(cat "$mnt/late" 2>/dev/null)
case $got in
second | '') ;;
*) fail "a version that is gone: $got" ;;
esac
stop_mount
rm -rf "$work/tier"

# -- A page that takes longer than a read may to begin is waited for
s3_mount many
scan_through
far_zero
far_set list_ms=6000
"$refrain" refresh "$mnt" >/dev/null || fail 'a slow page ends a refresh'
far_set list_ms=0
expect 'list requests of a slow page' "$(far_count lists)" 1
stop_mount
rm -rf "$work/tier"

# -- An index without a mount
"$refrain" index s3://many --endpoint-url "$far" -o "$work/index" ||
	fail 'no index'
expect 'files of the index' "$(grep -c '\.bin' "$work/index")" 300

# -- Faults
s3_mount many --log-level info
scan_through
far_set busy=0.1
far_zero
cat "$mnt"/*/* | cmp - "$work/all" || fail 'EIO while the store is busy'
far_set busy=0
busy=$(far_count busy)
expect throttled "$(status_field origin_throttled)" "$busy"
wait_for 10 grep -q 'the source is busy' "$daemon_err" ||
	fail 'the log has no throttling'
[ "$busy" -gt 5 ] || fail 'nothing was refused'
stop_mount
rm -rf "$work/tier"
s3_mount many
scan_through
far_set cut=0.1
cat "$mnt"/*/* | cmp - "$work/all" || fail 'wrong bytes of cut bodies'
[ "$(far_count cut)" -gt 5 ] || fail 'nothing was cut'
far_set cut=0
stop_mount
rm -rf "$work/tier"
s3_mount many --log-level info
scan_through
far_set never=0.03
find "$mnt" -type f | sort | xargs -P 8 -n 10 cat >/dev/null ||
	fail 'EIO while some requests are never answered'
far_set never=0
[ "$(status_field origin_hedged)" -gt 0 ] || fail 'no late read was hedged'
wait_for 10 grep -q 'asking a second time' "$daemon_err" ||
	fail 'the log has no hedge'
stop_mount

# -- What is said at the start
rm -rf "$work/tier"
refused() {
	want=$1
	shift
	"$refrain" mount --foreground "$@" "$work/mnt" --cache \
		"$work/tier:10M" --endpoint-url "$far" >"$work/said" 2>&1 &&
		fail "mounted: $*"
	grep -q "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
	expect lines "$(wc -l <"$work/said")" 1
}
refused 'no such bucket' s3://nothing
refused 'no keys' s3://many/prefix
refused 'not contain a user name' s3://user:geheim@many
refused 'not contain a query string' 'https://host/x?token=geheim'
! grep -q geheim "$work/said" || fail 'a secret is repeated'
AWS_SECRET_ACCESS_KEY=wrong refused 'secret key does not match' s3://many
AWS_ACCESS_KEY_ID=wrong refused 'does not know the access key' s3://many
far_set no_list=1
refused 'do not permit this' s3://many
# Listings without sizes and pages without keys that have no end, also from a
# bucket without an order: nothing is listed a second time.
far_set no_list=0
far_put flat--x-s3/file a
# lists_once SETTING LISTS
lists_once() {
	far_zero
	far_set "$1"
	"$refrain" refresh "$mnt" >"$work/said" 2>&1 && fail "$1: refreshed"
	expect "$1: list requests" "$(far_count lists)" "$2"
	far_set "${1%=*}=0"
}
for bucket in many flat--x-s3; do
	s3_mount $bucket
	scan_through
	lists_once no_size=1 1
	lists_once blank=2 1001
	stop_mount
	rm -rf "$work/tier"
done
far_set endless=1
s3_mount many
wait_for 20 has_status scan incomplete || fail 'an endless listing goes on'
far_set endless=0
stop_mount
rm -rf "$work/tier"

# -- The region is found, a wrong clock is met
far_set move=1 skew_s=5000
s3_mount many
scan_through
expect 'first bytes' "$(head -c 1000 "$mnt/d0000000/f0000000.bin" | cksum)" \
	"$(head -c 1000 "$work/all" | cksum)"
far_set move=0 skew_s=0
stop_mount
! grep -rq 'Secret/' "$work"/daemon.*.err || fail 'a secret is in the log'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Answers and listings of a store that lie: readers get an error and no bytes,
# names stay as they were, the next file is right, and no secret is sent to
# another server.
set -u
name=s3-lies
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-safety-lib.sh
. "$(dirname "$0")/s3-safety-lib.sh"

second_far
s3_mount many --timeout 1 --limit 64K --chunk 64K
scan_through
n=0
for lie in bad_range no_range error_doc bad_etag loop \
	away="${second##*:}"; do
	n=$((n + 1))
	f=$(printf '%s/f%07d.bin' "$mnt" $n)
	far_set "${lie%%=*}=$(case $lie in *=*) echo "${lie#*=}" ;; *)
		echo 1 ;; esac)"
	if cat "$f" >"$work/one" 2>/dev/null; then fail "$lie: no error"; fi
	[ ! -s "$work/one" ] || fail "$lie: bytes were served"
	far_set "${lie%%=*}=0" verify=0
	curl -sf "$far/many/${f##*/}" -o "$work/want"
	far_set verify=1
	readable() {
		cmp -s "$work/want" "$f"
	}
	wait_for 10 readable || fail "$lie: not right afterwards"
done
expect 'requests of S3 that followed a redirect' "$(second_count gets)" 0
far_set cut=0.5
cat "$mnt"/f000003?.bin >"$work/one" || fail 'cut: EIO'
expect 'bytes of cut answers' "$(wc -c <"$work/one")" 1000000
far_set cut=0

# -- Listings that lie: known names stay
for lie in endless truncate_xml error_doc; do
	far_set $lie=1
	"$refrain" refresh "$mnt" >/dev/null 2>&1
	far_set $lie=0
	expect "$lie: names" "$(find "$mnt" -type f | wc -l)" 64
done

# none_goes_on: check that answers without an end are given up, and their
# connections closed. A 404 that is not an answer of S3 deletes nothing.
none_goes_on() {
	[ "$(far_count going)" = 0 ]
}
for status in 200 404 500; do
	far_set flood=$status
	"$refrain" refresh "$mnt" >/dev/null 2>&1
	cat "$mnt/f0000051.bin" >"$work/one" 2>/dev/null &&
		fail "$status without an end was read"
	ls "$mnt/none" >/dev/null 2>&1 && fail "$status: a name from nowhere"
	wait_for 20 none_goes_on || fail "$status without an end goes on"
	far_set flood=0
	expect "$status: names" "$(find "$mnt" -type f | wc -l)" 64
done
end_mount
! grep -rqaE 'Secret/|token/of' "$work"/daemon.*.err ||
	fail 'a secret is in the log'

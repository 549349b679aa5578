#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The loader opens entries of a tier only if nobody else can write to the tier
# (R8).
set -eu
name=access-direct
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse python3
requires_users

"$refrain" make-dataset "$work/images" --classes 2 --images 4 >/dev/null
# direct_hits: print the number of direct hits of an epoch over cached files.
direct_hits() {
	"$refrain" load "$mnt" --batch 2 --size 32 --epochs 2 --json \
		>"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
	sed 's/[{,]/\n/g' "$work/out" | sed -n 's/^"direct_hits": *//p'
}

start_mount "$work/images" "$mnt" --cache "$work/tier:10M"
scan_through
"$refrain" warm "$mnt" >/dev/null
[ "$(direct_hits)" -gt 0 ] || fail 'no direct hits in a tier of our own'
for mode in 770 707 1777; do
	chmod $mode "$work/tier"
	expect "direct hits in a tier of mode $mode" "$(direct_hits)" 0
done
chmod 700 "$work/tier"
chown nobody "$work/tier"
expect 'direct hits in a tier of another user' "$(direct_hits)" 0
chown root "$work/tier"
[ "$(direct_hits)" -gt 0 ] || fail 'no direct hits afterwards'
stop_mount

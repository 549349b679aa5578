#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Mounts of root: other users cannot enter the mount or, with --allow-other, can
# read what the modes of the files allow. A member of --group can enter the
# mount, send plans, and read the tier directly.
set -eu
name=access-root-mounts
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse fusermount3 python3
requires_users
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
# shellcheck source=tests/system/access-user-lib.sh
. "$(dirname "$0")/access-user-lib.sh"

chown -R root "$src/owner" "$src/closed"
start_mount "$src" "$mnt" --cache "$work/root:50M" --allow-other
can nobody "$mnt/all"
cannot nobody "$mnt/owner" 'Permission denied'
cannot nobody "$mnt/closed/inside" 'Permission denied'
cat "$mnt/owner" "$mnt/closed/inside" >"$work/got"
cannot nobody "$mnt/owner" 'Permission denied'
cannot nobody "$mnt/closed/inside" 'Permission denied'
as nobody cat "$work/root/refrain-tier" >"$work/got" 2>&1 &&
	fail 'a user reads the cache'
as nobody "$refrain" status "$mnt" >"$work/got" 2>&1 &&
	fail 'a user asks'
stop_mount
start_mount "$src" "$mnt" --cache "$work/root:50M"
cannot nobody "$mnt/all" 'Permission denied'
stop_mount

# A member of --group can enter the mount only with --allow-other, as --help
# says.
"$refrain" mount --help | tr -s ' \n' ' ' |
	grep -q 'regardless of their modes; to reach the mount itself,' ||
	fail '--help does not say what --group needs'
group=$(id -gn daemon)
start_mount "$src" "$mnt" --cache "$work/group:50M" --group "$group"
cat "$mnt/all" >"$work/got"
as daemon "$refrain" status "$mnt" >"$work/got" 2>&1 && fail 'a member asks'
says 'the mount may belong to another user'
stop_mount
start_mount "$src" "$mnt" --cache "$work/group:50M" --group "$group" \
	--allow-other
as daemon "$refrain" status "$mnt" >"$work/got" 2>&1 ||
	fail "a member cannot ask: $(cat "$work/got")"
can daemon "$mnt/all"
# The daemon accepts the member's plans, and the member's loader opens cached
# files in the tier.
"$refrain" make-dataset "$src/images" --classes 1 --images 32 --size 32x32 \
	>/dev/null
chmod -R a+rX "$src/images"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
"$refrain" warm "$mnt" >"$work/got" 2>&1 || fail "$(cat "$work/got")"
echo all | as daemon "$refrain" plan "$mnt" >"$work/got" 2>&1 ||
	fail "a member cannot plan: $(cat "$work/got")"
says '^1 file: 1 was in the cache'
as daemon "$refrain" load "$mnt/images" --batch 8 --size 32 --epochs 2 \
	>"$work/got" 2>&1 || fail "a member cannot load: $(cat "$work/got")"
[ "$(status_field direct_hits)" -gt 0 ] ||
	fail 'the loader of a member opens nothing itself'
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An ordinary user mounts through fusermount3, reads, queries the daemon and
# unmounts (M21). Another user cannot use the mount, the socket or the cache.
set -eu
name=access-unprivileged
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse fusermount3 python3
requires_users
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
# shellcheck source=tests/system/access-user-lib.sh
. "$(dirname "$0")/access-user-lib.sh"

user_mount || fail 'an ordinary user cannot mount'
as nobody sh -c "cd '$work/m' && sha256sum --quiet --strict -c '$work/sums'" ||
	fail 'wrong bytes'
can nobody "$work/m/owner"
can nobody "$work/m/closed/inside"
[ "$(user_status misses)" -gt 0 ] || fail 'no misses'
[ "$(user_status evictions)" -eq 0 ] || fail 'evictions'
grep -q " $work/m ro,nosuid,nodev,.* - fuse.refrain .*default_permissions" \
	/proc/self/mountinfo || fail "$(grep refrain /proc/self/mountinfo)"
pid=$(user_status pid)
expect 'the user of the daemon' "$(stat -c %U "/proc/$pid")" nobody

# Other users can use neither the mount nor the socket nor the cache.
cannot daemon "$work/m/all" 'Permission denied'
chmod 711 "$work/nobody" "$short/nobody"
as daemon ls "$work/m" >"$work/got" 2>&1 && fail 'another user lists it'
as daemon "$refrain" status "$work/m" >"$work/got" 2>&1 &&
	fail 'another user asks'
as daemon "$refrain" umount "$work/m" >"$work/got" 2>&1 &&
	fail 'another user unmounts'
socket=$(find "$short/nobody" -name '*.sock')
expect 'modes of the socket' "$(stat -c '%a %U' "$socket")" '600 nobody'
as daemon python3 - "$socket" <<'END' || fail 'another user connects'
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    sys.exit(0)
sys.exit(1)
END
expect 'modes of the cache' \
	"$(stat -c '%a %U' "$work/nobody/cache")" '700 nobody'
as daemon ls "$work/nobody/cache" >"$work/got" 2>&1 &&
	fail 'another user lists the cache'
cannot root "$work/m/all" 'Permission denied'
user_umount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount of an ordinary user survives its daemon: the next daemon gets requests
# that the kernel sends again, and those that are in shared memory.
set -eu
name=access-survives
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse fusermount3 python3
requires_users
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
# shellcheck source=tests/system/access-user-lib.sh
. "$(dirname "$0")/access-user-lib.sh"

here=$(cd "$(dirname "$0")" && pwd)
mkdir "$src/many"
(cd "$src/many" && touch a b c)

for REFRAIN_DISABLE in '' resend; do
	user_mount || fail 'an ordinary user cannot mount'
	expect 'whether it is held' "$(user_status held)" '"yes"'
	as_owner python3 "$here/survive.py" "$refrain" "$work/m" "$src" 5 1 \
		>"$work/got" 2>&1 || fail "readers: $(cat "$work/got")"
	expect 'recoveries' "$(user_status recoveries)" 5
	user_umount
	as_owner "$refrain" clear "$work/nobody/cache" >/dev/null ||
		fail 'the owner cannot clear the cache'
done

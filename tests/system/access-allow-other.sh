#!/bin/sh
# SPDX-License-Identifier: MIT
#
# --allow-other of an ordinary user is refused unless root allows it. If it is
# allowed, the modes of the files decide what other users may read.
set -eu
name=access-allow-other
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse fusermount3 python3
requires_users
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
# shellcheck source=tests/system/access-user-lib.sh
. "$(dirname "$0")/access-user-lib.sh"

# --allow-other needs root's consent in /etc/fuse.conf.
sed '/^ *user_allow_other/d' /etc/fuse.conf >"$work/fuse.conf" 2>/dev/null || :
touch /etc/fuse.conf 2>/dev/null
mount --bind "$work/fuse.conf" /etc/fuse.conf
got=0
as_owner "$refrain" mount "$src" "$work/m" --allow-other \
	--cache "$work/nobody/c2:50M" >"$work/got" 2>&1 || got=$?
expect 'exit status' $got 1
expect 'lines of the refusal' "$(wc -l <"$work/got")" 1
grep -q '^refrain: .*user_allow_other.*--allow-other' "$work/got" ||
	fail "$(cat "$work/got")"
[ ! -e "$work/nobody/c2" ] || fail 'a refused mount leaves a cache directory'
umount /etc/fuse.conf
echo user_allow_other >>"$work/fuse.conf"
mount --bind "$work/fuse.conf" /etc/fuse.conf
user_mount --allow-other || fail 'no mount in spite of user_allow_other'
can daemon "$work/m/all"
cannot daemon "$work/m/owner" 'Permission denied'
cannot daemon "$work/m/closed/inside" 'Permission denied'
can nobody "$work/m/owner"
# This must also hold once the kernel has cached everything.
cannot daemon "$work/m/owner" 'Permission denied'
as daemon sh -c ": >'$work/m/all'" 2>/dev/null && fail 'it can be written'
as nobody sh -c ": >'$work/m/owner'" 2>/dev/null && fail 'it can be written'
expect 'what is left of it' "$(cat "$work/m/owner")" owner
as daemon "$refrain" status "$work/m" >"$work/got" 2>&1 &&
	fail 'another user asks'
user_umount

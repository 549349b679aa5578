#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files that the user of a mount may not read: warming, status, refresh and
# index report their number, and continue without them.
set -eu
name=access-unreadable
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse fusermount3 python3
requires_users
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
# shellcheck source=tests/system/access-user-lib.sh
. "$(dirname "$0")/access-user-lib.sh"

chown root "$src/owner" "$src/closed"
as_owner "$refrain" mount "$src" "$work/m" --cache "$work/nobody/c3:50M" ||
	fail 'no mount of what is closed in part'
as_owner "$refrain" warm "$work/m" >"$work/got" 2>&1 && fail 'all is warm'
closed="1 directory could not be listed: 'closed': Permission denied"
says "^refrain: warm: $closed"
says "^refrain: warm: 1 item could not be fetched: 'owner': Permission denied"
# All files except these two.
says "^$(($(find "$src" -type f ! -empty | wc -l) - 2)) items .* are cached"
expect 'refusals' "$(user_status origin_errors)" 1
expect 'whether it is all listed' "$(user_status scan_complete)" false
expect 'directories' "$(user_status unlisted_directories)" 1
as_owner "$refrain" status "$work/m" >"$work/got" || fail 'no status'
says "$closed"
as_owner "$refrain" refresh "$work/m" >"$work/got" 2>&1 && fail 'all is listed'
says "^refrain: refresh: $closed"
as_owner "$refrain" index "$src" >"$work/got" 2>&1 && fail 'all is in the index'
says "^refrain: index: .*$closed"
user_umount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain refresh` shows files that changed, were added or removed, and says
# how many; a directory that cannot be listed is named, and warming does without
# it.
set -eu
name=command-refresh
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/command-lib.sh
. "$(dirname "$0")/command-lib.sh"

mounted "$work/cache:100M"
warm 0

echo longer than before >>"$src/d1/e1/f00001"
echo new >"$src/d1/added"
rm "$src/d2/e2/f00002"
[ ! -e "$mnt/d1/added" ] || fail 'seen before the refresh'
ends 0 ' 1 file changed, 1 added, 1 removed' refresh "$mnt"
cmp "$src/d1/e1/f00001" "$mnt/d1/e1/f00001" || fail 'the old version'
cmp "$src/d1/added" "$mnt/d1/added" || fail 'not the added file'
[ ! -e "$mnt/d2/e2/f00002" ] || fail 'the removed file is still there'
ends 0 ' 0 files changed, 0 added, 0 removed' refresh "$mnt" d1 d2
ends 1 "'nowhere'" refresh "$mnt" nowhere
make_deep "$src"
echo found >"$src/deep/found"
deep="1 directory could not be listed: 'deep/n.*File name too long"
ends 1 "refresh: $deep" refresh "$mnt"
warm 1
grep -q "warm: $deep" "$work/err" || fail "$(cat "$work/err")"
expect 'directories in the answer' "$(warmed unlisted)" 1
expect 'items of the rest' "$(warmed cached_items)" "$(items "$src")"
expect 'what was found' "$(cat "$mnt/deep/found")" found
stop_mount

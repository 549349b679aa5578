#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Reports to an operator about a source that hangs: soon after it hangs, and
# until it answers, status says for how long, and how many readers wait.
set -u
name='log-hang'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse
# shellcheck source=tests/system/log-incidents-lib.sh
. "$(dirname "$0")/log-incidents-lib.sh"

head -c 20000 /dev/urandom >"$src/a"
cp "$src/a" "$src/b"
cp "$src/a" "$src/c"
start_mount "$src" "$mnt" --cache "$work/tier:1M" --fault ''
scan_through
"$refrain" fault "$mnt" 'stall=1' || fail 'cannot set the fault'
for f in a b c; do
	cat "$mnt/$f" >/dev/null &
	ends_with_test $!
done
# The time that several calls of status take on this machine does not count as a
# delay of the daemon.
began=$(date +%s%3N)
"$refrain" status "$mnt" >"$work/status" || fail 'no status'
look=$(($(date +%s%3N) - began))
silent='the source has not answered for [0-9]+ s'
must_show "^  errors +$silent, [1-3] reader"
took=$(($(date +%s%3N) - began))
note "a hang is shown after $took ms"
[ $took -lt $((3000 * patience + 10 * look)) ] ||
	fail "shown after $took ms"
must_show 'not answered for [0-9]+ s, 3 readers wait$'
must_show 'not answered for ([2-9]|[1-9][0-9]+) s'
"$refrain" fault "$mnt" '' || fail 'cannot set the fault'
is_well
wait_for 20 has_status parked 0 || fail 'readers still wait'
expect 'the silence of a source that answers' \
	"$(status_field origin_silent_ms)" 0
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
# A mount on /dev/fd/N, a connection that another program has opened: it serves,
# is found by its directory or its socket, is upgraded in place, and is never
# unmounted by the daemon.
set -eu
name=given
. "${srcdir:?}/tests/system/lib.sh"
requires fuse python3 fusermount3

make_tree "$src" 5 60 100000
mkfifo "$work/again"

# serve fusermount|mount OPTION ...: start a daemon; $opener is the program that
# mounts.
serve() {
	how=$1
	shift
	rm -f "$work/opened" "$work/log"
	python3 "$srcdir/tests/system/given_mount.py" "$how" "$mnt" \
		"$refrain" mount "$src" FD --cache "$work/cache:8M" \
		--log-file "$work/log" "$@" <"$work/again" >"$work/opened" \
		2>"$work/daemon.1.err" &
	opener=$!
	exec 8>"$work/again"
	wait_for 20 grep -qs 'control socket' "$work/log" ||
		fail "it does not serve"
	socket=$(sed -n "s/.*control socket: '\(.*\)'.*/\1/p" "$work/log")
	pid=$(status_field pid "$socket")
}

ended() {
	[ -s "$work/opened" ]
}

has_ended_with() {
	wait_for 20 ended || fail 'the daemon does not end'
	expect 'how it ended' "$(tail -n 1 "$work/opened")" "ended $1"
}

opener_ends() {
	exec 8>&-
	wait "$opener" || fail 'the program that mounts fails'
}

is_mounted() {
	grep -q " $mnt " /proc/self/mountinfo
}

note 'a mount of fusermount3'
serve fusermount
sums_right "$src.sums" "$mnt"
expect 'process' "$(status_field pid)" "$pid"
expect 'mountpoint' "$(status_field mountpoint | cut -c 1-8)" /dev/fd/

note 'an upgrade in place, with a file open'
exec 7<"$mnt/d0/e0/f00000"
"$refrain" upgrade "$socket" || fail 'no upgrade'
sums_right "$src.sums" "$mnt"
cat <&7 >/dev/null || fail 'the open file is lost'
exec 7<&-
expect 'process' "$(status_field pid)" "$pid"
expect 'last end' "$(status_field last_end)" upgrade

note 'SIGTERM ends the daemon, and not the mount'
kill "$pid"
has_ended_with 0
is_mounted || fail 'the daemon has unmounted it'

note 'a connection that was served before'
: >"$work/opened"
echo again >&8
# The first request on this connection is not INIT.
timeout 30 ls "$mnt" >"$work/ls" 2>&1 || :
wait_for 20 ended || fail 'it goes on'
expect 'how it ended' "$(tail -n 1 "$work/opened")" 'ended 1'
grep -q 'another process has served it before' "$work/log" ||
	fail 'it does not say why'
opener_ends
"$refrain" umount "$mnt" || umount "$mnt" || fail 'cannot unmount'

note 'who mounted it unmounts it'
serve fusermount
fusermount3 -u "$mnt" || fail 'cannot unmount'
has_ended_with 0
grep -q 'it was unmounted' "$work/log" || fail 'it does not say why it ended'
opener_ends

if [ "$(id -u)" -eq 0 ]; then
	note 'a mount of mount(2), of the type fuse'
	serve mount
	sums_right "$src.sums" "$mnt"
	"$refrain" status "$socket" >"$work/out" || fail 'no status'
	umount "$mnt"
	has_ended_with 0
	opener_ends
fi

note 'refusals'
refused() {
	why=$1
	shift
	! "$refrain" mount "$src" "$@" --cache "$work/cache:8M" \
		2>"$work/err" || fail "it mounts: $why"
	grep -qF -- "$why" "$work/err" || fail "not '$why': $(cat "$work/err")"
	expect "lines for '$why'" "$(wc -l <"$work/err")" 1
}
refused 'descriptor 77 is not open' /dev/fd/77
exec 6</dev/null
refused 'descriptor 6 is no open /dev/fuse' /dev/fd/6
refused 'is for the program that mounts' /dev/fd/6 --allow-other
refused 'needs the directory' /dev/fd/6 --pages 1G

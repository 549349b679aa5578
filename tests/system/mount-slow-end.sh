#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain umount` waits for a daemon that takes long to end, and says so: for a
# daemon with its socket, for one without a socket, and for one whose connection
# was aborted.
set -eu
name=mount-slow-end
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/mount-umount-lib.sh
. "${srcdir:-.}/tests/system/mount-umount-lib.sh"

# This program stops the first thread, which only takes the daemon down.
cat >"$work/hold.py" <<'PY'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                        ctypes.c_void_p]
SEIZE, INTERRUPT, pid = 0x4206, 0x4207, int(sys.argv[1])
for what in SEIZE, INTERRUPT:
    if libc.ptrace(what, pid, None, None) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(pid, 0x40000000)  # __WALL
print("held", flush=True)
sys.stdin.read()
PY
mkfifo "$work/release"

# slow_umount WHAT [COMMAND ...]: unmount while the first thread is stopped.
slow_umount() {
	what=$1
	shift
	note "slow: $what"
	rm -f "$work/held.out" "$work/err"
	python3 "$work/hold.py" "$pid" <"$work/release" >"$work/held.out" \
		2>&1 &
	tracer=$!
	exec 8>"$work/release"
	wait_for 10 grep -qs held "$work/held.out" ||
		fail "cannot trace: $(cat "$work/held.out")"
	[ $# -eq 0 ] || "$@"
	"$refrain" umount "$mnt" 8>&- 2>"$work/err" &
	unmounting=$!
	wait_for 20 grep -qs 'waiting for' "$work/err" || {
		wait $unmounting && fail "$what: it returns: $(cat "$work/err")"
		fail "$what: it does not say what it waits for"
	}
	complains "$mnt" "waiting for its daemon (process $pid): "
	! not_running "$pid" || fail "$what: nothing to wait for"
	exec 8>&-
	wait $tracer || fail 'the tracer fails'
	wait $unmounting || fail "$what: $(cat "$work/err")"
	not_running "$pid" || fail "$what: the daemon is still there"
}

abort_connection() {
	echo 1 >"$work/fusectl/$1/abort"
	umount "$work/fusectl"
}

# knows_connections: does the kernel show the process of a connection? Linux
# does from 6.16 on.
knows_connections() {
	grep -qs fuse_connection "/proc/$pid/fdinfo/"*
}

in_background
slow_umount 'it is asked'
in_background
socket=$(find "$XDG_RUNTIME_DIR" -name '*.sock')
rm "$socket"
if knows_connections; then
	slow_umount 'without a socket'
	in_background
	mkdir "$work/fusectl"
	mount -t fusectl none "$work/fusectl" ||
		fail 'cannot mount fusectl'
	number=$(mountpoint -d "$mnt")
	slow_umount 'aborted' abort_connection "${number#*:}"
else
	! "$refrain" umount "$mnt" 2>"$work/err" ||
		fail 'it cannot know'
	complains "$mnt" 'not known whether its daemon has ended' \
		"$socket"
	wait_for 20 not_running "$pid" || fail 'the daemon stays'
fi

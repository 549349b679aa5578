#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How a mount ends: when `refrain umount` returns the daemon is gone and its
# cache free; a busy mount stays, or goes out of sight with --lazy; a dead one
# is detached. And mount.refrain mounts as mount(8) asks it to.
set -eu
name=umount
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse

make_tree "$src" 1 40 100000
cache=$work/cache

# in_background [OPTION ...]: mount and return, as it does by itself.
in_background() {
	"$refrain" mount "$src" "$mnt" --cache "$cache:8M" "$@" ||
		fail 'cannot mount'
	pid=$(status_field pid)
}

is_mounted() {
	[ -n "$(mounts_below "$work")" ]
}

# A process that has ended stays a zombie where nobody adopts orphans.
not_running() {
	! grep '^State:' "/proc/$1/status" 2>/dev/null | grep -qv '[ZX] '
}

# complains TEXT ...: the last error was one line that says so.
complains() {
	expect 'lines of the error' "$(wc -l <"$work/err")" 1
	for text; do
		grep -qF -- "$text" "$work/err" ||
			fail "not '$text', but: $(cat "$work/err")"
	done
}

# The caller may have closed the standard descriptors before.
timeout $((20 * patience)) "$refrain" mount "$src" "$mnt" --cache "$cache:8M" \
	<&- >&- 2>&- || fail 'cannot mount with closed standard descriptors'
diff -r "$src" "$mnt" || fail 'a mount without standard descriptors'
"$refrain" umount "$mnt" <&- >&- 2>&- || fail 'cannot unmount without them'

# Gone means gone, every time: the next mount can have the cache.
for _ in 1 2 3 4 5; do
	in_background
	sums_right "$src.sums" "$mnt"
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	not_running "$pid" || fail 'the daemon is still there'
	! is_mounted || fail 'the mount is still there'
done

# A command that watches the mount ends with it.
in_background
"$refrain" status --watch "$mnt" >"$work/watched" 2>&1 &
watch=$!
wait_for 20 grep -qs 'scan' "$work/watched" || fail 'watch shows nothing'
"$refrain" umount "$mnt" || fail 'cannot unmount'
wait "$watch" || fail "watch failed: $(cat "$work/watched")"

# A busy one stays as it is, and can be taken out of sight.
in_background
exec 9<"$mnt/d0/e0/f00000"
! "$refrain" umount "$mnt" 2>"$work/err" || fail 'a busy mount was unmounted'
complains "$mnt" busy --lazy "(process $$)"
expect 'the mount that stayed' "$(status_field pid)" "$pid"
"$refrain" umount --lazy "$mnt" || fail 'cannot detach'
! is_mounted || fail 'the mount is still in sight'
exec 9<&-
wait_for 20 not_running "$pid" || fail 'the daemon outlives its last user'

# A stopped daemon: who asks is told within seconds what to do.
in_background
stop_process "$pid"
for c in status umount; do
	begun=$(date +%s)
	! "$refrain" $c "$mnt" 2>"$work/err" || fail "$c of a stopped daemon"
	took=$(($(date +%s) - begun))
	[ $took -le $((8 * patience)) ] || fail "$c takes $took s"
	complains "$mnt" "(process $pid) is stopped" "kill -CONT $pid"
done
! is_mounted || fail 'the mount of the stopped daemon is still there'
kill -CONT "$pid"
wait_for 20 not_running "$pid" || fail 'the daemon does not go on to its end'

# Finds what keeps the daemon of a mount that cannot be seen.
if [ "$(id -u)" -eq 0 ]; then
	in_background
	mkdir "$work/bound"
	mount --bind "$mnt" "$work/bound"
	! "$refrain" umount "$mnt" 2>"$work/err" || fail 'it ends nevertheless'
	complains "process $pid" "also mounted at '$work/bound'"
	umount "$work/bound"
	wait_for 20 not_running "$pid" || fail 'the daemon outlives the bind'

	# A copy of the mount in the mount namespace of somebody else.
	in_background
	mkfifo "$work/hold" "$work/held"
	# shellcheck disable=SC2016 # for the inner shell
	unshare -m --propagation private sh -c \
		'echo held >"$2"; read -r _ <"$1"' \
		sh "$work/hold" "$work/held" &
	holder=$!
	read -r _ <"$work/held"
	! "$refrain" umount "$mnt" 2>"$work/err" || fail 'it ends nevertheless'
	complains "process $pid" "mount namespace of " \
		"(process $holder) has it at '$mnt'"
	echo end >"$work/hold"
	wait "$holder" || fail 'the holder fails'
	wait_for 20 not_running "$pid" || fail 'the daemon outlives the holder'
fi

# A daemon that takes long: umount says what it waits for, waits, and finds the
# daemon without its socket, too, and when its connection was aborted. `hold.py`
# stops the first thread, which only takes the daemon down.
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
mkfifo "$work/release" 2>/dev/null || :

# slow_umount WHAT [COMMAND ...]: run while the thread is held.
slow_umount() {
	what=$1
	shift
	note "slow: $what"
	rm -f "$work/held.out" "$work/err"
	python3 "$work/hold.py" "$pid" <"$work/release" >"$work/held.out" \
		2>&1 &
	tracer=$!
	exec 8>"$work/release"
	wait_for 10 grep -q held "$work/held.out" ||
		fail "cannot trace: $(cat "$work/held.out")"
	[ $# -eq 0 ] || "$@"
	"$refrain" umount "$mnt" 8>&- 2>"$work/err" &
	unmounting=$!
	wait_for 20 grep -q 'waiting for' "$work/err" || {
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

# The kernel says which process a connection belongs to: Linux 6.16.
knows_connections() {
	grep -qs fuse_connection "/proc/$pid/fdinfo/"*
}

if [ "$(id -u)" -eq 0 ] && command -v python3 >/dev/null; then
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
fi

# A dead one that nobody holds says what to do, and that helps.
in_background --no-hold
kill -9 "$pid"
wait_for 20 not_running "$pid" || fail 'kill -9 does not'
! "$refrain" status "$mnt" 2>"$work/err" || fail 'a dead mount has a status'
complains "$mnt" "refrain umount $mnt"
"$refrain" umount "$mnt" || fail 'cannot detach a dead mount'
! is_mounted || fail 'the dead mount is still there'
! "$refrain" umount "$mnt" 2>"$work/err" || fail 'unmounted what is none'
complains "$mnt" 'nothing is mounted'

# The helper of mount(8), as an fstab line has it.
ln -s "$refrain" "$work/mount.refrain"
for words in cahce=x:8M:cache tiemout=3:timeout sttaging=1G:staging; do
	got=0
	"$work/mount.refrain" "$src" "$mnt" -o "ro,${words%:*}" 2>"$work/err" ||
		got=$?
	expect "exit status of -o ${words%:*}" $got 2
	complains "unknown option '${words%:*}' (did you mean ${words##*:}?)"
done
"$work/mount.refrain" "$src" "$mnt" -n -o \
	"rw,noauto,_netdev,x-systemd.automount,cache=$cache:8M,limit=1M" ||
	fail 'the helper cannot mount'
expect 'the name of its process' \
	"$(cat "/proc/$(status_field pid)/comm")" refrain
sums_right "$src.sums" "$mnt"
"$refrain" umount "$mnt" || fail 'cannot unmount'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A daemon is killed while it notifies the kernel of a changed name, which waits
# for the lock of a directory. A look-up has the lock and waits for the daemon.
# The next daemon serves at once, and no program sees an error: with
# refrain-hold, with descriptors kept as systemd does, as process 1 of a PID
# namespace, and as an ordinary user. The process that waits for the lock is
# replaced if it is killed or stopped, and nothing of it is left when the mount
# ends, however it ends.
#
# REFRAIN_KILLS is the number of kills, over all kinds of daemons. Each kind is
# killed a fiftieth as often, but at least once (default: once).
set -eu
name=survive-notified
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse root python3 unshare

kills=$(((${REFRAIN_KILLS:-1} + 49) / 50))
as= # words before commands that mount and read, to select the user
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$src/d" "$src/e"
echo 0 >"$src/d/f"
echo e >"$src/e/f"

# all COMM: print the living processes of the test with that name.
all() {
	grep -lsxz "REFRAIN_TEST_WORK=$work" /proc/[0-9]*/environ |
		while IFS=/ read -r _ _ p _; do
			read -r comm 2>/dev/null <"/proc/$p/comm" || continue
			[ "$comm" != "$1" ] || has_ended "$p" || echo "$p"
		done
}

the_daemon() {
	for p in $(all refrain); do
		! tr '\0' ' ' <"/proc/$p/cmdline" |
			grep -q 'mount --foreground' || echo "$p"
	done
}

status_field() {
	$as "$helpers/status_field" "$mnt" "$1" || :
}

# -- How a mount is held -------------------------------------------------------

daemon_words() {
	set -- "$refrain" mount --foreground "$src" "$mnt" \
		--cache "$work/c:10M" --revalidate 1 --log-file "$work/log" \
		--fault stall=1,meta=1,match=d/nothing
	printf '%s\n' "$@" >"$work/words"
}
daemon_words

# with_daemon: run the command with the command line of the daemon.
with_daemon() {
	while IFS= read -r word; do
		set -- "$@" "$word"
	done <"$work/words"
	"$@" 2>>"$work/hold.err"
}

held_hold() {
	with_daemon "$refrain" hold --
}

held_store() {
	with_daemon python3 "$here/keep_fds.py"
}

held_namespace() {
	with_daemon unshare --pid --fork "$refrain" hold --
}

# held_joined: start the daemon like a runtime that starts a container again,
# which waits for all of its processes.
held_joined() {
	"$refrain" hold --socket "$short/hold" 2>>"$work/hold.err" &
	wait_for 20 test -S "$short/hold"
	while [ ! -e "$work/over" ]; do
		with_daemon unshare --pid --fork --kill-child \
			"$refrain" hold --join "$short/hold" -- || :
	done
	kill $!
	wait
}

held_user() {
	# shellcheck disable=SC2086 # they are words
	with_daemon $as "$refrain" hold --
}

# held HOW: mount; $launcher is the process that holds the mount.
held() {
	rm -f "$work/over" "$work/hold.err" "$work/log"
	"held_$1" &
	launcher=$!
	wait_for 20 has_status ready true ||
		fail "$1: no mount: $(cat "$work/hold.err")"
	recoveries=0
	expect "$1: whether it is held" "$(status_field held)" yes
	$as cat "$mnt/d/f" "$mnt/e/f" >/dev/null # the kernel has the names now
}

left() {
	all refrain
	all refrain-notify
	all refrain-hold
}

nothing_left() {
	[ -z "$(left)" ]
}

ends() {
	touch "$work/over"
	$as "$refrain" umount "$mnt" || fail "$how: cannot unmount"
	wait_for 20 nothing_left || fail "$how: left: $(left)"
	wait $launcher || :
}

# -- A notification that waits -------------------------------------------------

waits_in_kernel() {
	grep -q request_wait_answer "/proc/$1/wchan" 2>/dev/null
}

# look_up: start a look-up that waits for the source, because the kernel's name
# has expired.
look_up() {
	$as stat "$mnt/d/nothing" >"$work/stat" 2>&1 &
	reader=$!
	until has_ended $reader; do
		! waits_in_kernel $reader || break
	done
	tries=20
	while [ $tries -gt 0 ] && waits_in_kernel $reader; do
		tries=$((tries - 1))
		sleep 0.01
	done
	[ $tries -eq 0 ]
}

# notifies: wait until a process waits in a notification; $waiter is the
# process.
notifies() {
	for waiter in $(all refrain-notify); do
		! grep -q inval_entry "/proc/$waiter/wchan" || return 0
	done
	return 1
}

change=0
changes() {
	change=$((change + 1))
	echo $change >"$src/d/new"
	mv "$src/d/new" "$src/d/f"
}

changed() {
	[ "$($as cat "$mnt/d/f")" = $change ]
}

notification_waits() {
	wait_for 20 look_up || fail "$how: no look-up waits for the source"
	changes
	$as "$refrain" refresh "$mnt" d/f >"$work/refresh" 2>&1 &
	refresher=$!
	wait_for 20 notifies || fail "$how: no process waits in a notification"
}

# read_on: check that other programs can read and look up meanwhile without an
# error.
read_on() {
	i=0
	while [ -d "$work" ] && [ ! -e "$work/read" ]; do
		$as cat "$mnt/e/f" "$mnt/d/f" >/dev/null || echo cat
		! $as stat "$mnt/e/$((i += 1))" 2>/dev/null || echo stat
	done >"$work/errors" 2>&1
}

killed_once() {
	notification_waits
	pid=$(the_daemon)
	kill -9 "$pid"
	recoveries=$((recoveries + 1))
	wait_for 60 has_status recoveries $recoveries ||
		fail "$how: nobody takes over: $(cat "$work/hold.err")"
	grep -q inval_entry "/proc/$waiter/wchan" ||
		fail "$how: nothing was tested: process $waiter waits no more"
	! has_ended "$reader" ||
		fail "$how: the look-up ended: $(cat "$work/stat")"
	$as "$refrain" fault "$mnt" ''
	wait_for 20 has_ended "$reader" || fail "$how: the look-up hangs"
	grep -q 'No such file' "$work/stat" ||
		fail "$how: the look-up: $(cat "$work/stat")"
	wait $refresher || : # the daemon of the refresh has ended
	wait_for 20 changed || fail "$how: the change is not seen"
	wait_for 20 has_ended "$waiter" || fail "$how: the old process stays"
	$as "$refrain" fault "$mnt" stall=1,meta=1,match=d/nothing
}

killed_often() {
	held "$how"
	rm -f "$work/read"
	read_on &
	others=$!
	# the program does not have the environment of the test
	ends_with_test $others
	for _ in $(seq "$kills"); do
		killed_once
	done
	touch "$work/read"
	wait_for 20 has_ended $others || fail "$how: others hang"
	[ ! -s "$work/errors" ] || fail "$how: others: $(cat "$work/errors")"
	ends
	note "$how${REFRAIN_DISABLE:+, without $REFRAIN_DISABLE}:" \
		"$recoveries kills"
}

for how in hold store namespace joined; do
	for REFRAIN_DISABLE in '' resend; do
		export REFRAIN_DISABLE
		killed_often
	done
done
REFRAIN_DISABLE=

# -- The process is killed or stopped ------------------------------------------

is_replaced() {
	now=$(all refrain-notify)
	[ -n "$now" ] && [ "$now" != "$old" ]
}

says() {
	wait_for 20 grep -q "$1" "$work/log" ||
		fail "$how: SIG$signal: no line in the log: $(cat "$work/log")"
}

# A process that is killed is replaced at once; a process that is stopped is
# replaced when it gets a task.
for how in hold store; do
	for signal in KILL STOP; do
		held $how
		changes # the process gets a task
		"$refrain" refresh "$mnt" d/f >"$work/refresh"
		old=$(all refrain-notify)
		kill -$signal "$old"
		case $how$signal in
		holdKILL) says 'changed names .* was replaced' ;;
		storeKILL) says 'the daemon does its work' ;;
		esac
		changes
		"$refrain" refresh "$mnt" d/f >"$work/refresh"
		changed || fail "$how: after SIG$signal: no change is seen"
		wait_for 20 has_ended "$old" ||
			fail "$how: the old process stays"
		if [ $how = hold ]; then
			wait_for 20 is_replaced ||
				fail "$how: SIG$signal: it is not replaced"
			says 'changed names .* was replaced'
		else
			says 'the daemon does its work'
		fi
		ends
	done
done

# From the PID namespace of the daemon, nothing shows that the process is
# stopped.
how=joined
signal=STOP
held joined
old=$(all refrain-notify)
kill -STOP "$old"
changes
timeout $((60 * patience)) "$refrain" refresh "$mnt" d/f >"$work/refresh" ||
	fail 'stopped elsewhere: the daemon waits for it'
changed || fail 'stopped elsewhere: no change is seen'
says 'changed names .* was replaced'
ends

# A debugger has stopped the process. The names still change, and the mount can
# end.
how=hold
held hold
changes
"$refrain" refresh "$mnt" d/f >"$work/refresh"
old=$(all refrain-notify)
python3 - "$old" <<'END' &
import ctypes, signal, sys
SEIZE, INTERRUPT = 0x4206, 0x4207
libc, pid = ctypes.CDLL(None), int(sys.argv[1])
assert libc.ptrace(SEIZE, pid, 0, 0) == libc.ptrace(INTERRUPT, pid, 0, 0) == 0
signal.pause()
END
debugger=$!
is_traced() {
	grep -q '^State:.t' "/proc/$old/status"
}
wait_for 20 is_traced || fail 'it cannot be traced'
changes
timeout $((20 * patience)) "$refrain" refresh "$mnt" d/f >"$work/refresh" ||
	fail 'traced: the daemon waits for it'
changed || fail 'traced: no change is seen'
kill $debugger
wait $debugger || :
ends

# -- The mount ends ------------------------------------------------------------

# The mount is detached while a file is open, and ends with the file.
how=hold
held hold
changes
"$refrain" refresh "$mnt" d/f >"$work/refresh"
exec 9<"$mnt/e/f"
"$refrain" umount --lazy "$mnt" || fail 'cannot detach'
exec 9<&-
wait_for 20 nothing_left || fail "detached: left: $(left)"

# No daemon can be started, and a notification waits.
cat >"$work/once" <<END
#!/bin/sh
[ "\$REFRAIN_HELD" != again ] || exit 1
exec "\$@"
END
chmod +x "$work/once"
held_once() {
	# shellcheck disable=SC2086 # they are words
	with_daemon $as "$refrain" hold --recover-timeout 3 -- "$work/once"
}
given_up() {
	held once
	notification_waits
	kill -9 "$(the_daemon)"
	wait_for 60 has_ended "$reader" || fail "$how: the look-up hangs"
	wait_for 20 nothing_left || fail "$how: left: $(left)"
	! mounts_below "$work" | grep -qx "$mnt" ||
		fail "$how: the mount is there"
	grep -q 'gave up: ' "$work/hold.err" ||
		fail "$how: it does not say why: $(cat "$work/hold.err")"
}
how='given up'
given_up

# The next daemon has another source, so it refuses the mount and makes a new
# one at the same place.
mkdir "$work/other"
echo other >"$work/other/f"
cat >"$work/turns" <<END
#!/bin/sh
[ "\$REFRAIN_HELD" = again ] || exec "\$@"
exec "$refrain" mount --foreground "$work/other" "$mnt" \\
	--cache "\${XDG_RUNTIME_DIR}/c2:9M"
END
chmod +x "$work/turns"
held_turns() {
	# shellcheck disable=SC2086 # they are words
	with_daemon $as "$refrain" hold -- "$work/turns"
}
other_serves() {
	[ "$($as cat "$mnt/f" 2>/dev/null)" = other ]
}
refused() {
	held turns
	notification_waits
	kill -9 "$(the_daemon)"
	wait_for 60 has_ended "$reader" || fail "$how: the look-up hangs"
	wait_for 20 other_serves || fail "$how: $(cat "$work/hold.err")"
	wait_for 20 has_ended "$waiter" || fail "$how: the old process stays"
	expect 'processes that notify' "$(all refrain-notify | wc -l)" 1
	ends
}
how=refused
refused

# held_lost: the same for a daemon that does not get everything that was kept.
held_lost() {
	KEEP_FDS_LOSE=refrain-names with_daemon python3 "$here/keep_fds.py"
}
mounted_again() {
	[ -n "$(the_daemon)" ] && has_status recoveries 0 && changed
}
how=lost
held lost
notification_waits
kill -9 "$(the_daemon)"
wait_for 60 has_ended "$reader" || fail 'lost: the look-up hangs'
wait_for 20 mounted_again || fail "lost: $(cat "$work/hold.err" "$work/log")"
grep -q 'not all of its state was kept' "$work/log" ||
	fail "lost: $(cat "$work/log")"
ends

# -- An ordinary user ----------------------------------------------------------

# The user's /dev/fuse exists only in this mount namespace.
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'no mount namespace for a user'
requires setpriv fusermount3
mkdir "$work/dev" "$work/nobody" "$short/nobody"
mount -t tmpfs -o mode=755 none "$work/dev"
mknod "$work/dev/fuse" c 10 229 && chmod 666 "$work/dev/fuse"
mount --bind "$work/dev/fuse" /dev/fuse
umount -l "$work/dev"
chmod 711 "$work" "$short"
chmod -R a+rX "$src"
chown nobody "$work/nobody" "$short/nobody" "$mnt"
chmod 700 "$short/nobody"
as="setpriv --reuid nobody --regid $(id -g nobody) --clear-groups"
as="$as env XDG_RUNTIME_DIR=$short/nobody"
$as test -x "$refrain" || skip "nobody cannot reach $refrain"
sed "s|$work/c:|$work/nobody/c:|; s|$work/log|$work/nobody/log|" \
	"$work/words" >"$work/words.user"
cp "$work/words.user" "$work/words"
how=user
for REFRAIN_DISABLE in '' resend; do
	export REFRAIN_DISABLE
	killed_often
done
REFRAIN_DISABLE=

# The user cannot abort the connection either, if /sys/fs/fuse does not exist.
chmod -R a+rX "$work/other" "$work/once" "$work/turns"
mount -t tmpfs none /sys/fs/fuse
for REFRAIN_DISABLE in '' resend; do
	export REFRAIN_DISABLE
	how="user, refused${REFRAIN_DISABLE:+, without $REFRAIN_DISABLE}"
	refused
	how="user, given up${REFRAIN_DISABLE:+, without $REFRAIN_DISABLE}"
	given_up
done

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A daemon is killed while pages of its mount are dropped (--pages). To drop
# them, the file is opened, and the kernel looks its name up again, because it
# has expired (--revalidate); the look-up waits for the source. The next daemon
# serves at once, and no program sees an error: with refrain-hold, and with
# descriptors kept as systemd does.
# The process that drops pages is replaced if it is killed, and nothing of it is
# left when the mount ends.
#
# REFRAIN_KILLS is the number of kills, over all kinds of daemons. Each kind is
# killed a fiftieth as often, but at least once (default: once).
set -eu
name=survive-pages
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse root python3

kills=$(((${REFRAIN_KILLS:-1} + 49) / 50))
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$src/d" "$src/e"
# A daemon does not know of pages that were read before it: each file is read
# once before a kill, or once after it.
for i in d/a e/b $(seq -f 'd/n%g' "$kills") $(seq -f 'e/n%g' $((3 * kills))); do
	head -c 200000 /dev/urandom >"$src/$i"
done

# all COMM: print the living processes of the test with that name.
all() {
	grep -lsxz "REFRAIN_TEST_WORK=$work" /proc/[0-9]*/environ |
		while IFS=/ read -r _ _ p _; do
			read -r comm 2>/dev/null <"/proc/$p/comm" || continue
			[ "$comm" != "$1" ] || has_ended "$p" || echo "$p"
		done
}

# No file fits into the tier, and pages of one file may stay.
begins() {
	set -- "$@" "$refrain" mount --foreground "$src" "$mnt" \
		--cache "$work/c:100K" --pages 300K --revalidate 1 \
		--log-file "$work/log" --fault ''
	: >"$work/log"
	"$@" 2>"$work/hold.err" &
	launcher=$!
	wait_for 20 has_status ready true ||
		fail "no mount: $(cat "$work/hold.err")"
	expect 'whether it is held' "$(status_field held)" yes
	recoveries=0
}

left() {
	all refrain
	all refrain-notify
	all refrain-pages
	all refrain-hold
}

nothing_left() {
	[ -z "$(left)" ]
}

ends() {
	"$refrain" umount "$mnt" || fail "$how: cannot unmount"
	wait_for 20 nothing_left || fail "$how: left: $(left)"
	wait $launcher || :
}

dropped() {
	[ "$(status_field pages_dropped)" -ge "$1" ]
}

# own_look_up_waits: does a thread of the daemon, or another process of the
# mount, wait for the look-up?
own_look_up_waits() {
	for p in $(all refrain) $(all refrain-pages); do
		! grep -qs request_wait_answer /proc/"$p"/task/*/wchan ||
			return 0
	done
	return 1
}

# expires: wait until the kernel's names have expired. It keeps them for a
# second, and nothing shows when that is over.
expires() {
	sleep 1.1
}

killed_once() {
	n=$((recoveries + 1))
	cat "$mnt/d/n$n" >/dev/null # the pages of this file are the oldest
	expires
	"$refrain" fault "$mnt" stall=1,meta=1,match=d
	cat "$mnt/e/n$n" >/dev/null # these pages exceed the limit
	wait_for 20 own_look_up_waits ||
		fail "$how: nothing waits: $(cat "$work/log")"
	kill -9 "$(status_field pid)"
	recoveries=$n
	wait_for 60 has_status recoveries $n ||
		fail "$how: nobody takes over: $(cat "$work/hold.err")"
	# These files were not read before, and together they have too many
	# pages.
	cmp "$src/e/n$((kills + n))" "$mnt/e/n$((kills + n))" ||
		fail "$how: others cannot read"
	"$refrain" fault "$mnt" ''
	cmp "$src/d/n$n" "$mnt/d/n$n" || fail "$how: wrong bytes"
	cat "$mnt/e/n$((2 * kills + n))" >/dev/null
	wait_for 20 dropped 200000 ||
		fail "$how: pages are not dropped any more"
}

killed_often() {
	for _ in $(seq "$kills"); do
		killed_once
	done
	note "$how${REFRAIN_DISABLE:+, without $REFRAIN_DISABLE}: $kills kills"
}

for REFRAIN_DISABLE in '' resend; do
	export REFRAIN_DISABLE
	how=hold
	begins "$refrain" hold --
	killed_often
	ends
	how=store
	begins python3 "$here/keep_fds.py"
	killed_often
	ends
done
REFRAIN_DISABLE=

# -- The process is killed -----------------------------------------------------

is_replaced() {
	now=$(all refrain-pages)
	[ -n "$now" ] && [ "$now" != "$old" ]
}

how=hold
begins "$refrain" hold --
old=$(all refrain-pages)
kill -9 "$old"
wait_for 20 is_replaced || fail 'it is not replaced'
wait_for 20 grep -q 'drops the kernel.s pages .* was replaced' "$work/log" ||
	fail "no line in the log: $(cat "$work/log")"
cat "$mnt/d/a" "$mnt/e/b" >/dev/null
wait_for 20 dropped 200000 || fail 'the next one drops no pages'
ends

how=store
begins python3 "$here/keep_fds.py"
kill -9 "$(all refrain-pages)"
wait_for 20 grep -q 'stay until the kernel needs' "$work/log" ||
	fail "no line in the log: $(cat "$work/log")"
cat "$mnt/d/a" "$mnt/e/b" >/dev/null
ends

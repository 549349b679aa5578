#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A daemon that is killed while it tells the kernel of a change, which waits for
# the lock of a directory, which a reader holds, who waits for the daemon: the
# process cannot end by itself. The holder ends the mount in bounded time.
set -eu
name=survive-notified
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse root

mkdir "$src/d"
echo one >"$src/d/f1"
"$refrain" hold --recover-timeout 5 -- "$refrain" mount --foreground "$src" \
	"$mnt" --cache "$work/c:10M" --revalidate 1 \
	--fault stall=1,meta=1,match=d/nothing 2>"$work/hold.err" &
holder=$!
wait_for 20 has_status ready true || fail "no mount: $(cat "$work/hold.err")"
pid=$(status_field pid)
cat "$mnt/d/f1" >/dev/null # the kernel knows the name

# A look-up waits for the source, once the kernel's answer has become too old.
waits_in_kernel() {
	grep -q 'request_wait_answer' "/proc/$1/wchan" 2>/dev/null
}
look_up() {
	stat "$mnt/d/nothing" >/dev/null 2>&1 &
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
wait_for 20 look_up || skip 'no look-up waits for the source'

# The kernel is told of a change in the same directory.
notifies() {
	cat "/proc/$pid"/task/*/wchan 2>/dev/null | grep -q inval_entry
}
echo two2 >"$src/d/new"
mv "$src/d/new" "$src/d/f1"
"$refrain" refresh "$mnt" d/f1 >"$work/refresh" 2>&1 &
ends_with_test $!
wait_for 20 notifies || skip 'no thread waits in a notification'

kill -9 "$pid"
wait_for 60 has_ended $reader || fail 'the reader hangs'
wait_for 20 has_ended "$pid" || fail 'the daemon hangs'
wait_for 20 has_ended $holder || fail 'the holder waits for its daemon'
mounts_below "$work" | grep -qx "$mnt" && fail 'the mount is still there'
grep -q 'one of its threads still waits' "$work/hold.err" ||
	fail "it does not say why: $(cat "$work/hold.err")"

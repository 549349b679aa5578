#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A holder gives up in bounded time even if its daemon hangs in the kernel and
# cannot be killed: programs that wait get an error, and the mount ends. A
# holder continues if daemons are killed before they serve. It removes only an
# unused socket at the path of its own socket.
set -eu
name=survive-holder
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse root

# -- A daemon that cannot be killed ------------------------------------------

# It reads by O_DIRECT from a mount whose daemon has its request and is stopped.
other=$work/other
mkdir "$other" "$work/hung"
head -c 8192 /dev/urandom >"$src/a"
head -c 8192 /dev/urandom >"$work/hung/a"
start_mount "$work/hung" "$other" --cache "$work/cache.hung:100M" --fault ''
"$refrain" fault "$other" stall=1
mnt=$work/mnt

cat >"$work/daemon" <<END
#!/bin/sh
[ "\$REFRAIN_HELD" = again ] ||
	exec "$refrain" mount --foreground "$src" "$mnt" --cache "$work/c:1G"
exec dd "if=$other/a" iflag=direct bs=4096 of=/dev/null
END
chmod +x "$work/daemon"
"$refrain" hold --recover-timeout 8 -- "$work/daemon" 2>"$work/hold.err" &
holder=$!
wait_for 20 has_status ready true || fail "no mount: $(cat "$work/hold.err")"
pid=$(status_field pid)
exec 9<"$mnt/a"

hung_reads() {
	[ "$(status_field parked "$other")" = 1 ]
}
kill -9 "$pid"
timeout 120 cat <&9 >"$work/out" 2>"$work/cat.err" &
reader=$!
wait_for 20 hung_reads || fail "nobody reads: $(cat "$work/hold.err")"
stop_process "$daemon"
# shellcheck disable=SC2013 # words
for child in $(cat "/proc/$holder/task/$holder/children"); do
	! grep -qx dd "/proc/$child/comm" || break
done
wait_for 60 has_ended "$holder" || fail 'the holder waits for its daemon'
! has_ended "$child" || fail 'the daemon could be killed: nothing was tested'
status=0
wait "$reader" || status=$?
[ $status -eq 1 ] ||
	fail "the reader ended with $status: $(cat "$work/cat.err")"
exec 9<&-
mounts_below "$work" | grep -qx "$mnt" && fail 'the mount is still there'
grep -q 'gave up: no daemon served' "$work/hold.err" ||
	fail "it does not say why: $(cat "$work/hold.err")"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || :
daemon=
wait_for 20 has_ended "$child" || fail 'the daemon hangs'

# -- Daemons that are killed before they serve ---------------------------------

# These kills are like those of a machine without memory, so they do not count
# as failures.
cat >"$work/unlucky" <<END
#!/bin/sh
n=\$(cat "$work/starts")
echo \$((n + 1)) >"$work/starts"
case \$n in
[1-6]) kill -9 \$\$ ;;
esac
exec "$refrain" mount --foreground "$src" "$mnt" --cache "$work/c:1G"
END
chmod +x "$work/unlucky"
echo 0 >"$work/starts"
"$refrain" hold -- "$work/unlucky" 2>"$work/hold.err" &
holder=$!
wait_for 20 has_status ready true || fail "no mount: $(cat "$work/hold.err")"
exec 9<"$mnt/a"
kill -9 "$(status_field pid)"
cmp - "$src/a" <&9 || fail "a reader has an error: $(cat "$work/hold.err")"
exec 9<&-
expect 'starts' "$(cat "$work/starts")" 8
expect 'recoveries' "$(status_field recoveries)" 1
"$refrain" umount "$mnt" || fail 'cannot unmount'
wait_for 20 has_ended "$holder" || fail 'the holder outlives the mount'

# -- The path of a socket ----------------------------------------------------

echo data >"$work/file"
! timeout 20 "$refrain" hold --socket "$work/file" 2>"$work/hold.err" ||
	fail 'a holder listens at a file'
expect 'the file' "$(cat "$work/file")" data
grep -q "cannot listen at '$work/file': Address already in use" \
	"$work/hold.err" || fail "it says: $(cat "$work/hold.err")"

# starts_at PATH: start a holder with a socket at PATH; $holder is its process.
starts_at() {
	"$refrain" hold --socket "$1" 2>"$work/hold.err" &
	holder=$!
	ends_with_test $holder
	wait_for 20 listens "$1" $holder ||
		fail "it does not listen: $(cat "$work/hold.err")"
}

# listens: has the process opened the socket at the path?
listens() {
	inode=$(awk -v p="$1" '$8 == p { print $7 }' /proc/net/unix)
	[ -n "$inode" ] && find "/proc/$2/fd" -lname "socket:\[$inode\]" |
		grep -q .
}
starts_at "$short/hold"
! timeout 20 "$refrain" hold --socket "$short/hold" 2>"$work/second.err" ||
	fail 'two holders listen at one path'
listens "$short/hold" $holder || fail 'the first one lost its path'
kill -9 $holder
wait $holder 2>/dev/null || :
starts_at "$short/hold"
kill $holder
wait $holder || fail 'it does not end as told'
[ ! -e "$short/hold" ] || fail 'it leaves its socket'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A daemon in a PID namespace of its own, as in a container, does not see its
# readers: a signal that a reader gets while the origin hangs does not end its
# look-up.
set -eu
name=foreign-reader
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3 timeout
unshare -p -f true 2>/dev/null || skip 'no PID namespaces for this user'

mkdir "$src/slow"
echo x >"$src/slow/x"

# start_mount() starts this program as the daemon; it executes the real one.
inner=$refrain
refrain=$work/refrain
cat >"$refrain" <<END
#!/bin/sh
[ "\$1" = mount ] || exec "$inner" "\$@"
exec unshare -p -f --kill-child "$inner" "\$@"
END
chmod +x "$refrain"

start_mount "$src" "$mnt" --cache "$work/cache:10M" \
	--fault 'stall=1,meta=1,match=slow'
python3 - "$mnt/slow/x" >"$work/said" 2>&1 <<'END' &
import os, signal, sys

signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
size = os.stat(sys.argv[1]).st_size
signal.setitimer(signal.ITIMER_REAL, 0) # at its end, Python has no handlers
print(size)
END
reader=$!
waits_for_origin() {
	[ "$(awk '/^SigPnd|^ShdPnd/ { print $2 }' "/proc/$reader/status" |
		grep -c 2000)" != 0 ]
}
wait_for 20 waits_for_origin || fail 'no signal has come to the reader'
"$refrain" fault "$mnt" ''
wait "$reader" || fail "the look-up ended: $(cat "$work/said")"
[ "$(cat "$work/said")" = 2 ] || fail 'the size is not right'
"$refrain" umount "$mnt" || fail 'cannot unmount'
daemon_ended

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The messages of a mount to systemd: descriptors to store, that the mount is
# ready, and that it stops.
set -eu
name=mount-notify
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 flock
# shellcheck source=tests/system/mount-end-lib.sh
. "$(dirname "$0")/mount-end-lib.sh"

python3 - "$work/notify" >"$work/notified" <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    text = s.recv(4096).decode()
    print(text, flush=True)
    if 'STOPPING=1' in text:
        break
END
listener=$!
wait_for 10 test -S "$work/notify" || fail 'no socket to notify'
NOTIFY_SOCKET=$work/notify
export NOTIFY_SOCKET
begin
unset NOTIFY_SOCKET
wait_for 10 grep -q READY=1 "$work/notified" || fail 'systemd is told nothing'
expect 'what systemd is to keep' "$(grep '^FDNAME=' "$work/notified")" \
	"FDNAME=refrain-fuse
FDNAME=refrain-session
FDNAME=refrain-names"
expect 'what systemd is told' "$(tail -n 1 "$work/notified")" READY=1
stop_mount
wait $listener
expect 'what systemd is told' "$(tail -n 1 "$work/notified")" STOPPING=1
all_gone systemd

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Shares of two users: neither sees the other's, a job refuses a host of
# another user, and a host refuses a job of another user.
set -eu
name=share-users
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root python3
requires_users

for u in nobody daemon; do
	mkdir "$short/$u"
	chown "$u" "$short/$u"
	chmod 700 "$short/$u"
done
"$refrain" make-dataset --classes 2 --images 64 --size 48x32 "$work/data" \
	>/dev/null
chmod -R a+rX "$work/data"

# Do not use a function here, so that $! is the job itself.
setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups \
	env -i PATH="$PATH" XDG_RUNTIME_DIR="$short/nobody" \
	"$refrain" load --batch 16 --size 32 --share s --share-jobs 2 \
	--timeout 0 "$work/data" >"$work/job" 2>&1 &
job=$!
wait_for 20 test -S "$short/nobody/refrain-share/s.sock" ||
	fail "no share: $(cat "$work/job")"

# Try with the user's own directory, and with the directory of the other user,
# which is not used.
for dir in "$short/daemon" "$short/nobody"; do
	user_runtime=$dir
	as daemon "$refrain" share >"$work/got" 2>&1 || fail "share as daemon"
	grep -q 'there are no shares' "$work/got" ||
		fail "daemon sees: $(cat "$work/got")"
done

# The superuser can open the socket, but is still refused.
python3 - "$short/nobody/refrain-share/s.sock" <<'PY' || fail "see above"
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
    s.settimeout(60)
    s.connect(sys.argv[1])
    said = s.recv(4096)
assert b"the share belongs to another user" in said, said
PY

# A host of another user, in a directory that this user can write to.
mkdir -p "$short/daemon/refrain-share"
chown daemon "$short/daemon/refrain-share"
chmod 700 "$short/daemon/refrain-share"
cat >"$work/listen.py" <<'PY'
import os, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
os.setgid(65534)
os.setuid(65534)  # the user that calls listen() is the user of the host
listener.listen()
print("listens", flush=True)
sys.stdin.read()
PY
mkfifo "$work/hold"
python3 "$work/listen.py" "$short/daemon/refrain-share/t.sock" \
	<"$work/hold" >"$work/said" &
listener=$!
exec 7>"$work/hold"
wait_for 20 grep -qs listens "$work/said" || fail 'nobody listens'
user_runtime=$short/daemon
status=0
as daemon "$refrain" load --batch 16 --size 32 --share t "$work/data" \
	>"$work/got" 2>&1 || status=$?
exec 7>&-
wait "$listener"
[ "$status" = 1 ] || fail "status $status: $(cat "$work/got")"
grep -q "share 't' is hosted by another user" "$work/got" ||
	fail "not refused: $(cat "$work/got")"

kill "$job" 2>/dev/null || :
wait "$job" || :
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Trust (R8). The attribute that names the control socket counts only on the
# root of a refrain mount, and the socket only if the mount's owner or root
# serves it: for the commands, the loader and the Python helper.
set -eu
name=access-trust
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse python3
requires_users

listener=
end_listener() {
	status=$?
	set +e
	kill "$listener" 2>/dev/null
	(exit $status)
	cleanup
}
trap end_listener EXIT

# listen USER SOCKET: start a process of that user that records who connects,
# and answers nothing.
listen() {
	: >"$2.log"
	as "$1" python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listening", os.getpid(), flush=True)
while True:
    s.accept()[0].close()
    print("connected", flush=True)' "$2" >"$2.log" 2>"$work/listener.err" &
	wait_for 10 grep -q listening "$2.log" || fail 'nobody listens'
	listener=$(sed -n 's/^listening //p' "$2.log")
}

# plan_of DIR: print what the Python helper finds in DIR, and the result of its
# plan.
plan_of() {
	PYTHONPATH=${PYTHONPATH:-$tools} python3 -c '
import sys, refrain_plan
plan = refrain_plan.Plan(sys.argv[1])
plan.epoch(0, ["a"])
plan.flush(10)
print(refrain_plan.find_mount(sys.argv[1])[0], plan.error)' "$1"
}
tools=$(cd "$(dirname "$0")/../../tools" && pwd)

mkdir -m 777 "$short/theirs"
theirs=$short/theirs/control.sock
listen nobody "$theirs"

# -- A directory with the attribute ------------------------------------------

"$refrain" make-dataset "$work/images" --classes 2 --images 4 >/dev/null
python3 -c 'import os, sys
os.setxattr(sys.argv[1], "user.refrain.control", sys.argv[2].encode())' \
	"$work/images" "$theirs" 2>/dev/null || skip 'no extended attributes'
for c in status refresh warm verify; do
	"$refrain" $c "$work/images" >"$work/out" 2>&1 && fail "$c believes it"
done
"$refrain" load "$work/images" --batch 2 --size 32 --epochs 1 \
	>"$work/out" 2>&1 || fail "$(cat "$work/out")"
expect 'what Python finds' "$(plan_of "$work/images")" 'None None'
expect 'connections to a planted socket' "$(grep -c connected "$theirs.log")" 0

# -- A mount whose attribute names somebody else's socket --------------------

"$helpers/stand_in" --socket "$mnt" "$theirs" >"$work/stand_in" &
daemon=$!
wait_for 10 grep -q ready "$work/stand_in" || skip 'cannot mount'
"$refrain" status "$mnt" >"$work/out" 2>"$work/err" && fail 'status believes it'
grep -q "socket of '$mnt': it is served neither by user 0" "$work/err" ||
	fail "$(cat "$work/err")"
plan_of "$mnt" >"$work/out"
grep -q 'not served by the owner' "$work/out" || fail "$(cat "$work/out")"
umount -l "$mnt"
wait "$daemon" || :
daemon=

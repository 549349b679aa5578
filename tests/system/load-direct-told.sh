#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Direct hits of loaders are reported to the mount and shown, a loader that is
# killed loses only what it had not reported, and malformed reports are refused.
set -eu
name=load-direct-told
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 timeout
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

bare
warm_mount
all_direct warm
"$refrain" status "$mnt" | grep -q 'more opened directly by loaders' ||
	fail 'the screen does not show direct hits'
count=$(status_field direct_hits)
"$refrain" status "$mnt" --prometheus |
	grep -q "^refrain_direct_hits_total{.*} $count\$" ||
	fail 'Prometheus does not get direct hits'
# A loader that is killed loses only what it had not reported.
told=$(status_field direct_hits)
"$refrain" load "$mnt/train" --batch 16 --size 32 --step-ms 50 \
	--epochs 100 >/dev/null 2>&1 &
loader=$!
more_told() {
	[ "$(status_field direct_hits)" -gt "$told" ]
}
wait_for 20 more_told || fail 'direct hits are told at the end only'
kill -9 $loader
wait $loader 2>/dev/null || :
python3 - "$mnt" <<'END' || fail 'malformed reports are taken'
import json, os, socket, sys

s = socket.socket(socket.AF_UNIX)
s.connect(os.getxattr(sys.argv[1], 'user.refrain.control'))
answers = s.makefile()

def ask(**request):
    s.sendall(json.dumps(request).encode() + b'\n')
    return json.loads(answers.readline())

def told():
    status = ask(cmd='status')['status']
    return status['direct_hits'], status['direct_hit_bytes']

before = told()
for bad in (-1, 1.5, '1', None, 1 << 60):
    assert not ask(cmd='report', direct_hits=bad)['ok'], bad
    assert not ask(cmd='report', direct_hits=1, direct_hit_bytes=bad)['ok']
assert told() == before
assert ask(cmd='report')['ok']
assert ask(cmd='report', direct_hits=3, direct_hit_bytes=40)['ok']
assert ask(cmd='plan')['ok']
assert ask(cmd='plan-progress', position=0, direct_hits=2)['ok']
assert not ask(cmd='plan-progress', direct_hits=-2)['ok']
assert told() == (before[0] + 5, before[1] + 40), told()
END
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Plans by the control socket: which requests are refused, how names are
# counted, and that nothing is left when the client dies in the middle of a
# line.
set -eu
name=plan-clients
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/plan-lib.sh
. "$(dirname "$0")/plan-lib.sh"

half_fits
python3 - "$mnt" <<'END' || fail 'a client in mid-line'
import json, os, socket, sys
path = os.getxattr(sys.argv[1], 'user.refrain.control').decode()
s = socket.socket(socket.AF_UNIX)
s.connect(path)
f = s.makefile('rwb')
def ask(line):
    f.write(line)
    f.flush()
    return json.loads(f.readline())
assert not ask(b'{"cmd":"plan-add","paths":[]}\n')['ok']
assert not ask(b'{"cmd":"plan","echo":"0.5"}\n')['ok']
assert not ask(b'{"cmd":"plan","batch":-1}\n')['ok']
assert not ask(b'{"cmd":"plan","batch":8,"echo":4,"window":9}\n')['ok']
assert ask(b'{"cmd":"plan","batch":8,"echo":4}\n')['ok']
names = ['d/' + n for n in sorted(os.listdir(sys.argv[1] + '/d'))]
a = ask(json.dumps({'cmd': 'plan-add', 'paths': names + [
    'd', 'd/none', '../x', '/etc/passwd', names[0], {'hex': '2f'}, 7,
    'd/../d/' + names[0]]}).encode() + b'\n')
assert a['ok'] and a['added'] == len(names), a
assert a['not_file'] == 2 and a['duplicate'] == 1 and a['unknown'] == 5, a
k = ask(b'{"cmd":"keys","paths":["%s","none","d"]}\n' % names[0].encode())
assert len(k['keys'][0]['key']) == 32 and k['keys'][1:] == [None, None], k
assert ask(b'{"cmd":"plan-progress","position":3}\n')['ok']
assert ask(b'{"cmd":"plan-status"}\n')['done'] >= 3
# Another plan replaces the first one, and can be dropped.
def plans():
    return ask(b'{"cmd":"status"}\n')['status']['plans']
assert ask(b'{"cmd":"plan","batch":4}\n')['ok'] and plans() == 1
assert ask(b'{"cmd":"plan-status"}\n')['positions'] == 0
assert ask(b'{"cmd":"plan-drop"}\n')['ok'] and plans() == 0
assert not ask(b'{"cmd":"plan-progress","position":3}\n')['ok']
assert ask(b'{"cmd":"plan"}\n')['ok'] and plans() == 1
f.write(b'{"cmd":"plan-add","paths":["d/fa')
f.flush()
os._exit(0)
END
no_plan
stop_mount

# SPDX-License-Identifier: MIT
"""watch_budgets.py MOUNTPOINT FILE: until SIGTERM, asks the daemon over
several connections how many bytes each tier has charged and reserved, and
adds up the entries. Creates FILE when it has begun, and writes its results
there. Exits with 1 if a budget was ever exceeded.
"""
import json
import os
import signal
import socket
import sys
import threading

mountpoint, report = sys.argv[1:]
control = os.getxattr(mountpoint, 'user.refrain.control').decode()
lock = threading.Lock()
stop = threading.Event()
over = []
looks = [0, 0]
most = {}


def sum_of_entries(tier):
    total = 0
    for top, _, names in os.walk(tier['dir']):
        for name in names:
            if '-' in name and len(os.path.basename(top)) == 2:
                try:
                    size = os.stat(os.path.join(top, name)).st_size
                except FileNotFoundError:
                    continue
                total += (size + 4095) // 4096 * 4096
    return total


def judge(kind, tier, charged):
    with lock:
        looks[kind] += 1
        most[tier['dir']] = max(most.get(tier['dir'], 0), charged)
        if charged > tier['capacity_bytes']:
            over.append('%s: %d of %d' % (tier['dir'], charged,
                                          tier['capacity_bytes']))


def ask(files):
    s = socket.socket(socket.AF_UNIX)
    s.connect(control)
    f = s.makefile('rw')
    try:
        look(f, files)
    # the daemon has ended, and so does this program
    except (OSError, ValueError):
        stop.set()


def look(f, files):
    while not stop.is_set():
        f.write('{"cmd":"status"}\n')
        f.flush()
        for tier in json.loads(f.readline())['status']['tiers']:
            judge(0, tier, tier['used_bytes'] + tier['reserved_bytes'])
            if files:
                judge(1, tier, sum_of_entries(tier))
        stop.wait(0.005)


signal.signal(signal.SIGTERM, lambda *_: stop.set())
threads = [threading.Thread(target=ask, args=(i == 0,)) for i in range(8)]
for t in threads:
    t.start()
with open(report, 'w') as f:
    pass
stop.wait()
for t in threads:
    t.join()
with open(report, 'w') as f:
    f.write('\n'.join(over) or '%d looks at budgets, %d at sums of entries, '
            'at most %s' % (looks[0], looks[1], sorted(most.values())))
sys.exit(1 if over else 0)

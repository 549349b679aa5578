#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Acts as a training: reads files in the order of a list with some threads,
a bounded number of batches ahead, and takes a batch each --step-ms. The
kernel's pages of what was read are dropped. Prints one JSON object."""
import argparse
import json
import os
import sys
import threading
import time

a = argparse.ArgumentParser()
a.add_argument('mount')
a.add_argument('order')
a.add_argument('--batch', type=int, default=16)
a.add_argument('--step-ms', type=float, default=0)
a.add_argument('--threads', type=int, default=4)
a.add_argument('--ahead', type=int, default=2)
a.add_argument('--echo', type=int, default=1)
a = a.parse_args()

names = [line.rstrip('\n') for line in open(a.order)]
lock = threading.Condition()
state = {'next': 0, 'taken': 0, 'bad': 0}
done = [False] * len(names)
times = []


def read(name):
    begun = time.monotonic()
    fd = os.open(os.path.join(a.mount, name), os.O_RDONLY)
    size = 0
    while True:
        data = os.read(fd, 1 << 20)
        if not data:
            break
        size += len(data)
    bad = size != os.fstat(fd).st_size
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return bad, time.monotonic() - begun


def work():
    while True:
        with lock:
            while (state['next'] < len(names) and state['next'] >=
                    state['taken'] + a.ahead * a.batch):
                lock.wait()
            i = state['next']
            state['next'] += 1
        if i >= len(names):
            return
        bad, took = read(names[i])
        with lock:
            state['bad'] += bad
            times.append(took)
            done[i] = True
            lock.notify_all()


threads = [threading.Thread(target=work) for _ in range(a.threads)]
begun = time.monotonic()
for t in threads:
    t.start()
stalled = 0.0
due = begun
for first in range(0, len(names), a.batch):
    last = min(first + a.batch, len(names))
    waited = time.monotonic()
    with lock:
        while not all(done[first:last]):
            lock.wait()
        state['taken'] = last
        lock.notify_all()
    now = time.monotonic()
    stalled += now - waited
    # Simulate the step: a batch of fresh files is served `echo` times.
    due = max(due, now) + a.echo * a.step_ms / 1000 * (last - first) / a.batch
    while (left := due - time.monotonic()) > 0:
        time.sleep(left)
for t in threads:
    t.join()
times.sort()
print(json.dumps({
    'seconds': time.monotonic() - begun, 'stalled': stalled,
    'files': len(names), 'bad': state['bad'],
    'p50_ms': 1000 * times[len(times) // 2],
    'p99_ms': 1000 * times[len(times) * 99 // 100]}))
sys.exit(state['bad'] > 0)

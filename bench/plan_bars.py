#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One cell of bench/plan-bars.sh: `refrain load` on a mount with a slow source.

Prints one line: the four bounds of an epoch, the ratio of each epoch to the
greatest of them, and the balance of bytes. Exits with 1 if an epoch from the
third on is above the bar, if anything was fetched for nothing, or if the
balance is not 0.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BATCH = 32
BAR = 1.05
DEPTH = 64              # that the source finds useful, if it does not say
ENTRY_BYTES = 4096      # beside the content of an entry, at most


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument('--refrain', required=True)
    p.add_argument('--source', required=True)
    p.add_argument('--files', type=int, required=True)
    p.add_argument('--file-bytes', type=int, required=True)
    p.add_argument('--cached', type=float, default=0.5)
    p.add_argument('--delay-ms', type=float, default=0)
    p.add_argument('--rate', type=float, default=0, help='bytes a second')
    p.add_argument('--reads-ahead', type=int, default=8)
    p.add_argument('--epochs', type=int, default=6)
    p.add_argument('--echo', type=int, default=1)
    p.add_argument('--step-ms', type=float, default=64)
    p.add_argument('--mount-options', default='')
    return p.parse_args()


def status(a, mnt):
    done = subprocess.run([a.refrain, 'status', mnt, '--json'],
                          capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def fault(a):
    parts = []
    if a.delay_ms:
        parts.append('delay=%gms' % a.delay_ms)
    if a.rate:
        parts.append('rate=%d' % a.rate)
    return ','.join(parts)


def mount(a, work, mnt):
    blocks = (a.file_bytes + ENTRY_BYTES + 4095) // 4096 * 4096
    cache = int(a.files * a.cached) * blocks
    daemon = subprocess.Popen(
        [a.refrain, 'mount', a.source, mnt, '--foreground', '--cache',
         '%s/cache:%d' % (work, cache), '--pages', '1M', '--fault', fault(a)]
        + a.mount_options.split())
    for _ in range(600):
        if status(a, mnt).get('scan') == 'complete':
            return daemon
        if daemon.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit('the mount does not come')


def epochs(log):
    """Seconds between the batches that end an epoch."""
    begin, out = None, []
    with open(log, encoding='ascii') as f:
        for line in f:
            fields = line.split()
            at = float(fields[1]) / 1e6
            begin = at if begin is None else begin
            if fields[-1] != '0':
                out.append(at - begin)
                begin = at
    return out


def load(a, mnt, work, n):
    log = work + '/steps'
    out = subprocess.run(
        [a.refrain, 'load', mnt, '--batch', str(BATCH), '--step-ms',
         str(a.step_ms), '--size', '64', '--threads', '1', '--reads-ahead',
         str(a.reads_ahead), '--epochs', str(n), '--echo', str(a.echo),
         '--step-log', log, '--json'],
        capture_output=True, check=True)
    return json.loads(out.stdout), epochs(log)


def bounds(a, entries, warm_s):
    missing = a.files - entries
    return {
        'steps': a.files * a.echo / BATCH * a.step_ms / 1000,
        'rate': missing * a.file_bytes / a.rate if a.rate else 0,
        'latency': missing * a.delay_ms / 1000 / DEPTH,
        'reader': warm_s,
    }


def bare_reader(a):
    """Seconds that one thread takes for all files, from the kernel."""
    begin = time.monotonic()
    for top, _, names in os.walk(a.source):
        for name in names:
            with open(os.path.join(top, name), 'rb') as f:
                f.read()
    return time.monotonic() - begin


def measure(a, work):
    mnt = work + '/mnt'
    os.mkdir(mnt)
    daemon = mount(a, work, mnt)
    try:
        got, took = load(a, mnt, work, a.epochs)
        s = status(a, mnt)
    finally:
        subprocess.run([a.refrain, 'umount', mnt], check=False)
        daemon.wait()
    return got, took, s


def report(a, got, took, s, warm_s):
    ideal = bounds(a, s['entries'], warm_s)
    best = max(ideal.values())
    ratios = [t / best for t in took]
    hits = (s['hit_bytes'] + got['direct_hits'] * a.file_bytes
            - s['admitted_unread_bytes'])
    balance = (s['origin_bytes'] + s['prefetch_carried_bytes'] + hits
               - a.epochs * a.files * a.file_bytes)
    good = (max(ratios[2:], default=0) <= BAR and balance == 0
            and s['prefetch_wasted'] == 0)
    print(' '.join('%s %.2f' % x for x in ideal.items()), '| epochs',
          ' '.join('%.3f' % r for r in ratios), '| wasted',
          s['prefetch_wasted'], 'balance', balance,
          'ok' if good else 'BELOW THE BAR')
    return good


def main():
    a = arguments()
    bare_reader(a)
    warm_s = bare_reader(a)
    work = tempfile.mkdtemp(prefix='refrain-bars.')
    try:
        good = report(a, *measure(a, work), warm_s)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(0 if good else 1)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a trainer loses in the mount of an analysis, with everything cached:
its rate there and in the bare directory, both from memory, by turns.

    analyze_r1.py [--step-ms MS] REFRAIN DATA [TRAINER ...]

DATA has train/, a directory of directories of JPEGs. Trainers as in analyze.py.
Also compares the samples that the mount has counted in whole runs of EPOCHS
epochs with the trainer's own log, and says what the mount has fetched with
everything cached and hit with nothing cached. Exits with 1 if a bar is missed.

Wants a machine with nothing else to do. Real-time priority is no substitute:
readers of `load` then wait for each other's time slices.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from analyze import Mount, command

TURNS, SECONDS, SKIP = 3, 8, 3
LEAST = {'dl': 0.95, 'lo': 0.88}    # of the bare directory
COUNTED = 0.005
EPOCHS, BATCH = 5, 16


def times(a, trainer):
    """(seconds, samples so far) of its log."""
    samples, log = 0, []
    with open(a.log, encoding='ascii') as f:
        for line in f.read().splitlines():
            words = line.split()
            if trainer == 'load':
                samples += int(words[3])
                log.append((int(words[1]) / 1e6, samples))
            else:
                log.append((float(words[0]), int(words[1])))
    return log


def words_of(a, trainer, top):
    """Its command, without a step where that can be."""
    words = command(trainer, top, a)
    if trainer == 'load':
        words[words.index('--step-ms') + 1] = '%g' % a.load_step_ms
        words += ['--step-log', a.log]
    if os.path.exists(a.log):
        os.unlink(a.log)
    return words


def run(a, trainer, top, watch=None, seconds=SECONDS):
    """Samples a second after SKIP seconds, and what watch() says then and at
    the end."""
    words = words_of(a, trainer, top)
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    seen = []
    try:
        while not os.path.exists(a.log) or not os.path.getsize(a.log):
            assert child.poll() is None, 'the trainer ended'
            time.sleep(0.05)
        for wait in SKIP, seconds:
            time.sleep(wait)
            seen.append(watch and watch())
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    log = times(a, trainer)
    begin = next(i for i, s in enumerate(log) if s[0] >= log[0][0] + SKIP)
    took = log[-1][0] - log[begin][0]
    return (log[-1][1] - log[begin][1]) / took if took else 0, seen


def counted(a, trainer, mount):
    """Samples by the mount and by the log, of a run that ends by itself."""
    words = words_of(a, trainer, a.mount)
    if trainer == 'load':
        words[words.index('--epochs') + 1] = str(EPOCHS)
    else:
        files = sum(len(f) for _, _, f in os.walk(a.data + '/train'))
        words += ['--samples', str(EPOCHS * (files // BATCH * BATCH))]
    first = mount.ask('rates')['first_reads']
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    return (mount.ask('rates')['first_reads'] - first,
            times(a, trainer)[-1][1])


def warm_run(a, trainer):
    """Rate with everything cached, (counted, logged), bytes that were fetched,
    hits with everything hidden."""
    mount = Mount(a, a.data, [], '%s:80%%' % os.path.join(a.work, 'tier'))
    mount.ask('warm')

    def ask():
        return dict(mount.ask('rates'),
                    origin=mount.ask('status')['status']['origin_bytes'])
    try:
        rate, seen = run(a, trainer, a.mount, ask)
        count = counted(a, trainer, mount)
        mount.ask('mask', x=0)
        cold = run(a, trainer, a.mount, ask, 1)[1]
    finally:
        mount.close()
    return (rate, count, seen[1]['origin'] - seen[0]['origin'],
            cold[1]['hits'] - cold[0]['hits'])


def row(a, trainer):
    """Print it; True if the bars hold."""
    bare, there = [], []
    for _ in range(TURNS):
        bare.append(run(a, trainer, a.data)[0])
        there.append(warm_run(a, trainer))
    share = statistics.median(t[0] / b for t, b in zip(there, bare))
    ratio = sum(t[1][0] for t in there) / sum(t[1][1] for t in there)
    fetched, hits = sum(t[2] for t in there), sum(t[3] for t in there)
    ok = (share >= LEAST[trainer[:2]] and hits == 0 and fetched == 0 and
          abs(ratio - 1) <= COUNTED)
    print('%-5s bare %s, mount %s: %.3f (bar %.2f); counted %+.2f %% of the '
          'log; warm: %d bytes fetched, cold: %d hits: %s' % (
              trainer, ' '.join('%.0f' % r for r in bare),
              ' '.join('%.0f' % t[0] for t in there), share,
              LEAST[trainer[:2]], 100 * (ratio - 1), fetched, hits,
              'ok' if ok else 'MISSED'), flush=True)
    return ok


def main():
    """A row a trainer."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('refrain')
    p.add_argument('data')
    p.add_argument('trainers', nargs='*')
    p.add_argument('--step-ms', type=float, default=0, help='of DataLoader')
    p.add_argument('--load-step-ms', type=float, default=0)
    p.add_argument('--python', default=os.environ.get('PYTHON', 'python3'))
    a = p.parse_args()
    a.refrain, good = os.path.abspath(a.refrain), True
    with tempfile.TemporaryDirectory(dir='/dev/shm') as a.work:
        os.environ['XDG_CACHE_HOME'] = os.environ['XDG_RUNTIME_DIR'] = a.work
        a.mount, a.log = a.work + '/mnt', a.work + '/log'
        os.mkdir(a.mount)
        for trainer in a.trainers or ('dl2', 'dl4', 'load'):
            good = row(a, trainer) and good
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())

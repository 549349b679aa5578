#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a trainer loses in the mount of an analysis, with everything cached:
its rate there and in the bare directory, both from memory, by turns.

    analyze_r1.py [--step-ms MS] REFRAIN DATA [TRAINER ...]

DATA has train/, a directory of directories of JPEGs. Trainers as in analyze.py.
Both trainers run all the time; signals stop one while the other is measured, in
ROUNDS rounds of turns of TURN_S seconds. Whole runs in turn differ by 5 % among
themselves, the mean of the rounds by about 1 %.

Also compares the samples that the mount has counted in whole runs of EPOCHS
epochs with the trainer's own log, and says what the mount has fetched with
everything cached and hit with nothing cached. Exits with 1 if a bar is missed.

Wants a machine with nothing else to do. Real-time priority is no substitute:
readers of `load` then wait for each other's time slices.
"""
import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from analyze import Mount, command

ROUNDS, TURN_S, SKIP_S = 20, 2, 0.3
START_S, COLD_S = 5, 3
LEAST = {'dl': 0.95, 'lo': 0.88}    # as a share of the rate of the bare directory
COUNTED = 0.005
EPOCHS, BATCH = 5, 16


def times(log, trainer):
    """(seconds, samples so far) of its log."""
    samples, seen = 0, []
    with open(log, encoding='ascii') as f:
        # An incomplete line is still being written.
        for line in f.read().split('\n')[:-1]:
            words = line.split()
            if trainer == 'load':
                samples += int(words[3])
                seen.append((int(words[1]) / 1e6, samples))
            else:
                seen.append((float(words[0]), int(words[1])))
    return seen


def words_of(a, trainer, top, log):
    """Its command, without a step where that can be."""
    words = command(trainer, top, a)
    if trainer == 'load':
        words[words.index('--step-ms') + 1] = '%g' % a.load_step_ms
        words += ['--step-log', log]
    else:
        words[words.index('--log') + 1] = log
    if os.path.exists(log):
        os.unlink(log)
    return words


class Trainer:
    """A running one; stopped but for its turns."""

    def __init__(self, a, trainer, top, name):
        self.kind, self.log = trainer, os.path.join(a.work, 'log.' + name)
        self.child = subprocess.Popen(
            words_of(a, trainer, top, self.log), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        while not os.path.exists(self.log) or not os.path.getsize(self.log):
            assert self.child.poll() is None, 'the trainer ended'
            time.sleep(0.05)
        time.sleep(START_S)
        self.send(signal.SIGSTOP)

    def send(self, number):
        """A signal to all its processes."""
        os.killpg(self.child.pid, number)

    def turn(self, seconds):
        """It runs; the time but for the beginning."""
        self.send(signal.SIGCONT)
        time.sleep(SKIP_S)
        begin = time.monotonic()
        time.sleep(seconds)
        self.send(signal.SIGSTOP)
        return begin, begin + seconds

    def rates(self, turns):
        """Samples a second of each turn; lines are written some time late."""
        seen, log = [], times(self.log, self.kind)
        for begin, end in turns:
            part = [t for t in log if begin <= t[0] <= end]
            seen.append((part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0]))
        return seen

    def end(self):
        """Kill it."""
        self.send(signal.SIGKILL)
        self.child.wait()


def counted(a, trainer, mount):
    """Samples by the mount and by the log, of a run that ends by itself."""
    log = os.path.join(a.work, 'log.counted')
    words = words_of(a, trainer, a.mount, log)
    if trainer == 'load':
        words[words.index('--epochs') + 1] = str(EPOCHS)
    else:
        files = sum(len(f) for _, _, f in os.walk(a.data + '/train'))
        words += ['--samples', str(EPOCHS * (files // BATCH * BATCH))]
    first = mount.ask('rates')['first_reads']
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    return (mount.ask('rates')['first_reads'] - first,
            times(log, trainer)[-1][1])


def rounds(trainers):
    """The rates of each trainer in each round."""
    turns = {t: [] for t in trainers}
    for _ in range(ROUNDS):
        for t in random.sample(trainers, len(trainers)):
            turns[t].append(t.turn(TURN_S))
    for t in trainers:
        t.turn(COLD_S)              # so that the log has its last turn
    return [t.rates(turns[t]) for t in trainers]


def measure(a, trainer):
    """Rates, (counted, logged), bytes that were fetched with everything
    cached, hits with everything hidden."""
    mount = Mount(a, a.data, [], '%s:80%%' % os.path.join(a.work, 'tier'))
    mount.ask('warm')
    trainers = []

    def origin_bytes():
        return mount.ask('status')['status']['origin_bytes']
    try:
        first = origin_bytes()
        for top, name in (a.data, 'bare'), (a.mount, 'mount'):
            trainers.append(Trainer(a, trainer, top, name))
        seen = rounds(trainers)
        count = counted(a, trainer, mount)
        fetched = origin_bytes() - first
        mount.ask('mask', x=0)
        trainers[1].turn(COLD_S)    # consumes what it has read ahead
        hits = mount.ask('rates')['hits']
        trainers[1].turn(COLD_S)
        hits = mount.ask('rates')['hits'] - hits
        return seen, count, fetched, hits
    finally:
        for t in trainers:
            t.end()
        mount.close()


def row(a, trainer):
    """Print it; True if the bars hold."""
    seen, (count, logged), fetched, hits = measure(a, trainer)
    shares = [there / bare for bare, there in zip(*seen)]
    share = statistics.mean(shares)
    error = statistics.stdev(shares) / len(shares) ** 0.5
    ok = (share >= LEAST[trainer[:2]] and hits == 0 and fetched == 0 and
          abs(count / logged - 1) <= COUNTED)
    print('%-5s bare %.0f, mount %.0f: %.3f +- %.3f (bar %.2f); counted '
          '%+.2f %% of the log; warm: %d bytes fetched, cold: %d hits: %s' % (
              trainer, *map(statistics.mean, seen), share, error,
              LEAST[trainer[:2]], 100 * (count / logged - 1), fetched, hits,
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
        a.mount = a.work + '/mnt'
        os.mkdir(a.mount)
        for trainer in a.trainers or ('dl2', 'dl4', 'load'):
            good = row(a, trainer) and good
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())

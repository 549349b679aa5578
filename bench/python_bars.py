#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rows of bench/python.sh, which makes the data and the environment.

Two programs that are compared by what a processor does run at the same time,
each on a processor of its own, and change places in every round: other work on
the machine disturbs both alike. Two threads and two processes need both
processors, so those take turns.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = {'batch': 64, 'threads': 1, 'type': 'f32', 'layout': 'nchw'}
JOBS = 8

# Name, bar, description.
ROWS = [
    ('rate_e1', .98, 'batches/s, to refrain load, e = 1'),
    ('rate_e4', .98, 'e = 4'),
    ('rate_small', .98, 'images of 32x32, e = 1'),
    ('torchvision_e1', 2.7, 'images/core-second, to torchvision, e = 1'),
    ('torchvision_e4', 5, 'e = 4'),
    ('two_threads', .95, 'two threads, to two processes, images/s'),
    ('two_threads_small', .95, 'images of 32x32'),
    ('share_8', .95, 'slowest of 8 that share, to one alone, images/s'),
]


def command(a, folder, epochs, echo, **more):
    """`refrain load`."""
    words = [a.refrain, 'load', folder, '--epochs', epochs, '--echo', echo,
             '--no-hash', '--json']
    for name, value in {**OPTIONS, **more}.items():
        words += ['--' + name, value]
    return words


def script(name, *words, **more):
    """A program of this folder."""
    return [sys.executable, HERE / name, *words] + [
        '%s=%s' % row for row in {**OPTIONS, **more}.items()]


def start(words, cpus):
    """The process of a program that prints one line of JSON."""
    return subprocess.Popen(
        ['taskset', '-c', ','.join(map(str, cpus)), *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def result(process):
    """What it printed."""
    out = process.communicate()[0]
    if process.returncode:
        sys.exit('failed: %s' % ' '.join(process.args))
    return json.loads(out)


def twins(turn, cpus, *pair):
    """Both at the same time, each on a processor of its own."""
    places = cpus[::-1] if turn % 2 else cpus
    both = [start(words, [cpu]) for words, cpu in zip(pair, places)]
    return [result(process) for process in both]


def in_turn(turn, cpus, *pair):
    """One after the other, each on both processors."""
    order = (1, 0) if turn % 2 else (0, 1)
    return [row for _, row in sorted(
        (i, result(start(pair[i], cpus))) for i in order)]


def rate(turn, cpus, a, *args, **more):
    """Batches a second of the package to the command's; the package's row."""
    ours, theirs = twins(
        turn, cpus, script('peer_python.py', *args, **more),
        command(a, *args, **more))
    return ours['steps_per_s'] * theirs['seconds'] / theirs['steps'], ours


def two(turn, cpus, *args, **more):
    """Images a second of two threads to those of two processes."""
    threads, processes = in_turn(turn, cpus, *(
        script('python_two.py', how, *args, **more)
        for how in ('threads', 'processes')))
    return threads['images_per_s'] / processes['images_per_s']


def share(turn, cpus, *args):
    """Images a second of the slowest of those that share to one alone's."""
    shared, alone = twins(turn, cpus, script('python_share.py', JOBS, *args),
                          script('python_share.py', 1, *args))
    if shared['decodes'] != alone['decodes']:
        sys.exit('%d jobs decoded %d images, one alone %d' % (
            JOBS, shared['decodes'], alone['decodes']))
    return shared['slowest'] / alone['slowest']


def one_round(a, turn, cpus, rows):
    """Add to each row what this round gives."""
    def add(name, value):
        rows.setdefault(name, []).append(value)

    ratio, e1 = rate(turn, cpus, a, a.files, 4, 1)
    add('rate_e1', ratio)
    ratio, e4 = rate(turn, cpus, a, a.files, 6, 4)
    add('rate_e4', ratio)
    add('rate_small', rate(turn, cpus, a, a.small, 20, 1, size=32)[0])
    if importlib.util.find_spec('torchvision'):
        peer, e1 = twins(turn, cpus, [
            sys.executable, HERE / 'peer_torchvision.py', a.files, 0, 1],
            script('peer_python.py', a.files, 4, 1))
        add('torchvision_e1', peer['cpu_ms'] / e1['cpu_ms'])
        add('torchvision_e4', peer['cpu_ms'] / e4['cpu_ms'])
    add('two_threads', two(turn, cpus, a.files, 4))
    add('two_threads_small', two(turn, cpus, a.small, 15, size=32))
    add('share_8', share(turn, cpus, a.files, 8))


def show(rows):
    """The table; the names of the rows below their bars."""
    missed = []
    print('%-50s %6s %13s %5s' % ('', 'ratio', 'of rounds', 'bar'))
    for name, bar, text in ROWS:
        if name not in rows:
            print('%-50s not measured: no torchvision' % text)
            continue
        middle = statistics.median(rows[name])
        if middle < bar:
            missed.append(name)
        print('%-50s %6.3f %6.3f-%6.3f %5g  %s' % (
            text, middle, min(rows[name]), max(rows[name]), bar,
            'MISSED' if middle < bar else 'met'))
    return missed


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--rounds', type=int, required=True)
    for name in 'refrain', 'files', 'small', 'json', 'machine':
        p.add_argument('--' + name, required=True)
    a = p.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        print('python: not measured: needs two processors')
        return 77
    rows = {}
    for turn in range(a.rounds):
        one_round(a, turn, cpus, rows)
    missed = show(rows)
    with open(a.json, 'w', encoding='ascii') as f:
        json.dump({'bench': 'python', 'machine': a.machine,
                   'load': os.getloadavg()[0], 'rows': rows}, f)
    print('%s, load %.1f%s' % ('FAIL' if missed else 'PASS',
                               os.getloadavg()[0],
                               ''.join('; ' + name for name in missed)))
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The driver of the experiments with data echoing (doc/echoing.md).

Runs echo-train for each run of matrix.py that has no result yet, and collects
the results, a line of JSON a run. Interrupted, it goes on where it was.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import matrix

HERE = pathlib.Path(__file__).resolve().parent
HELD_OUT = 20  # every so many images of the training set are held out
REPORT = ('step', 'fresh', 'served', 'files_read', 'decodes', 'loss', 'score',
          'mean', 'echo_factor', 'r', 'seconds', 'evaluating', 'waited')


def die(what):
    sys.exit(f'run.py: {what}')


def say(what):
    print(what, flush=True)


# -- Data ---------------------------------------------------------------------

def write_list(path, files):
    path.write_text(''.join(f'{f}\t{f.split("/")[1]}\n' for f in files))


def make_images(build, out):
    """A set that can be learned, where CIFAR-10 is not at hand."""
    data = out / 'synthetic'
    if not (data / 'train').exists():
        for part, images, seed in (('train', 12000, 1), ('test', 500, 2)):
            subprocess.run(
                [build / 'refrain', 'make-dataset', '--classes', '10',
                 '--images', str(images), '--size', '32x32', '--seed',
                 str(seed), data / part], check=True,
                stdout=subprocess.DEVNULL)
    return data


def split_images(data, out):
    """Lists of what is trained on, held out, and left for the end."""
    for part in ('train', 'test'):
        if not (data / part).is_dir():
            die(f"no directory '{data / part}'")
        # The lists' paths begin where the lists are.
        (out / part).symlink_to(data / part)
    files = {part: sorted(f'{part}/{p.parent.name}/{p.name}'
                          for p in (data / part).glob('*/*.jpg'))
             for part in ('train', 'test')}
    train, held = [], []
    for i, f in enumerate(files['train']):
        (held if i % HELD_OUT == HELD_OUT // 2 else train).append(f)
    write_list(out / 'train.list', train)
    write_list(out / 'held-out.list', held)
    write_list(out / 'test.list', files['test'])


def text_of_tree(top):
    """What is written in this project: its sources and documents."""
    files = [p for d in ('src', 'tools', 'include', 'doc', 'man')
             for p in sorted((top / d).rglob('*'))
             if p.suffix in ('.c', '.h', '.md', '.1', '.3', '.7', '.8')]
    return b''.join(p.read_bytes() for p in files)


def make_text(out, tree):
    """Records of 8 bytes of context and 32 more; each 20th KiB held out."""
    text = text_of_tree(tree)
    train, held = bytearray(), bytearray()
    for i, at in enumerate(range(0, len(text) - 40, 32)):
        block = i // 32
        (held if block % HELD_OUT == HELD_OUT // 2 else train).extend(
            text[at:at + 40])
    (out / 'train.raw').write_bytes(train)
    (out / 'held-out.raw').write_bytes(held)
    return {'bytes': len(text), 'sha256': hashlib.sha256(text).hexdigest()}


# -- One run ------------------------------------------------------------------

class Driver:
    def __init__(self, args):
        self.args = args
        self.out = args.out
        self.program = args.build / 'experiments' / 'echo-train'
        self.until = time.monotonic() + args.minutes * 60
        self.lock = threading.Lock()  # of what is printed
        self.failed = 0
        if not os.access(self.program, os.X_OK):
            die(f"'{self.program}' is not built: make, with a BLAS; or say "
                'where with --build')

    def path(self, run):
        return self.out / f'{run["id"]}.jsonl'

    def command(self, run, rate, root=None):
        o = dict(run['options'])
        words = [str(self.program), '--lr', str(rate)]
        if o.get('text'):
            dataset, held = 'train.raw', 'held-out.raw'
        else:
            dataset, held = 'train.list', 'held-out.list'
            if root:
                words += ['--root', str(root)]
            if o.get('schedule') == 'linear':
                words += ['--test', str(self.out / 'test.list')]
        if not o.pop('blind', False):
            words += ['--held-out', str(self.out / held)]
        for name, value in o.items():
            words.append('--' + name)
            if value is not True:
                words.append(str(value))
        return words + [str(self.out / dataset)]

    def run(self, run, rate, root=None):
        """Its lines go to a file that has its name once it is whole."""
        path, part = self.path(run), self.path(run).with_suffix('.part')
        begun = time.monotonic()
        words = self.command(run, rate, root)
        with open(part, 'wb') as f:
            status = subprocess.run(
                words, stdout=f, check=False,
                env=dict(os.environ, OPENBLAS_NUM_THREADS='1')).returncode
        with self.lock:
            if status != 0:
                self.failed += 1
                say(f'{run["id"]}: FAILED ({status}): {" ".join(words)}')
                return
            part.rename(path)
            say(f'{run["id"]}: {brief(read_run(path))}, '
                f'{time.monotonic() - begun:.0f} s')

    # -- Many -----------------------------------------------------------------

    def rate_of(self, run, runs):
        """A number; or that of the best trial of a group."""
        if not isinstance(run['rate'], str):
            return run['rate']
        trials = [(cost(read_run(self.path(r))), r['rate'])
                  for r in runs if r['group'] == run['rate']
                  and self.path(r).exists()]
        if not trials:
            die(f'{run["id"]}: there are no trials {run["rate"]}')
        return min(trials)[1]

    def stage(self, stage, runs):
        todo = [r for r in stage if not self.path(r).exists()]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for r in todo:
                pool.submit(self.one_of_stage, r, runs)

    def one_of_stage(self, run, runs):
        if time.monotonic() > self.until:
            return
        try:
            self.run(run, self.rate_of(run, runs))
        except BaseException as e:  # a thread's would be lost
            with self.lock:
                self.failed += 1
                say(f'{run["id"]}: {e!r}')


# -- Results ------------------------------------------------------------------

def read_run(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {'begin': lines[0], 'reports': lines[1:-1], 'end': lines[-1]}


def cost(result):
    """Of a trial, for the choice of a learning rate: less is better."""
    last = result['reports'][-1]
    if result['begin']['schedule'] == 'linear':
        return -last['score']
    return last['fresh'] if result['end']['reached'] else float('inf')


def brief(result):
    last = result['reports'][-1]
    reached = 'reached' if result['end']['reached'] else 'ended'
    return (f'{reached} at step {last["step"]}, fresh {last["fresh"]}, '
            f'score {last.get("score")}')


def collect(out, stages, path):
    """One line a run: reports are rows, the columns are named once."""
    lines = []
    for run in (r for stage in stages for r in stage):
        if not (out / f'{run["id"]}.jsonl').exists():
            continue
        result = read_run(out / f'{run["id"]}.jsonl')
        end = result['end']
        stats = end.pop('stats')
        end['stats'] = {k: stats[k] for k in (
            'steps', 'fresh', 'served', 'files_read', 'decodes', 'redecodes',
            'in_batch_duplicates', 'min_lag_steps', 'mean_lag_steps',
            'echo_factor', 't_upstream_ms', 't_downstream_ms', 'r',
            'stall_pct', 'bottleneck', 'suggested_point') if k in stats}
        begin = result['begin']
        begin.pop('event')
        end.pop('event')
        lines.append(json.dumps(
            {'id': run['id'], 'group': run['group'], 'begin': begin,
             'columns': REPORT,
             'reports': [[r.get(c) for c in REPORT]
                         for r in result['reports']], 'end': end},
            separators=(',', ':')))
    path.write_text(''.join(line + '\n' for line in lines))
    say(f'{len(lines)} runs in {path}')


def prepare(driver, args):
    data = args.data or make_images(args.build, args.out)
    if not (args.out / 'test.list').exists():
        split_images(data.resolve(), args.out)
    if not (args.out / 'train.raw').exists():
        (args.out / 'text.json').write_text(json.dumps(
            make_text(args.out, args.tree)))


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--data', type=pathlib.Path,
                   help='CIFAR-10 as JPEGs, train/CLASS/*.jpg and test/; '
                   'without it a made set is used, with --smoke alone')
    p.add_argument('--build', type=pathlib.Path, default=pathlib.Path('.'),
                   help='the build folder; default the current one')
    p.add_argument('--tree', type=pathlib.Path, default=HERE.parent,
                   help='the text is that of the sources and documents there')
    p.add_argument('--out', type=pathlib.Path, required=True,
                   help='a folder for the result of each run')
    p.add_argument('--results', type=pathlib.Path,
                   help='write all results there, a line a run')
    p.add_argument('--smoke', action='store_true',
                   help='the smallest size: within a minute')
    p.add_argument('--stage', action='append',
                   help='these stages alone (and those that they need)')
    p.add_argument('--collect', action='store_true', help='run nothing')
    p.add_argument('--list', action='store_true',
                   help='list the runs, with those that are done')
    p.add_argument('--minutes', type=float, default=1e6,
                   help='begin no run after so many')
    p.add_argument('--jobs', type=int, default=2, help='runs at a time')
    args = p.parse_args()
    if not args.smoke and not args.data and not args.collect \
            and not args.list:
        die('--data is needed, but for --smoke')
    return args


def main():
    args = parse()
    args.out.mkdir(parents=True, exist_ok=True)
    stages = matrix.smoke() if args.smoke else matrix.whole()
    runs = [r for stage in stages for r in stage]
    driver = Driver(args)
    if args.list:
        for r in runs:
            say(f'{"done" if driver.path(r).exists() else "    "} '
                f'{r["stage"]}: {r["id"]}')
        return 0
    if not args.collect:
        prepare(driver, args)
        for stage in stages:
            name = stage[0]['stage'].removesuffix(' trials')
            if not args.stage or name in args.stage:
                driver.stage(stage, runs)
    if args.results:
        collect(args.out, stages, args.results)
    return 1 if driver.failed else 0


if __name__ == '__main__':
    sys.exit(main())

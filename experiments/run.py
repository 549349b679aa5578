#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The driver of the experiments with data echoing (doc/echoing.md).

Runs echo-train for each run of matrix.py that has no result yet, and collects
the results in one line of JSON for each run. After an interrupt, run it again
to continue.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import matrix
import results
import store
import tables

HERE = pathlib.Path(__file__).resolve().parent
HELD_OUT = 20  # every so many images of the training set are held out
# Columns of what is kept of a report.
LEARNING = ('step', 'fresh', 'served', 'decodes', 'loss', 'score', 'mean')
PACE = ('step', 'fresh', 'served', 'echo_factor', 'r', 'seconds', 'waited')


def die(what):
    sys.exit(f'run.py: {what}')


def say(what):
    print(what, flush=True)


# -- Data ---------------------------------------------------------------------

def write_list(path, files):
    path.write_text(''.join(f'{f}\t{f.split("/")[1]}\n' for f in files))


def make_images(build, out):
    """A generated dataset, for use without CIFAR-10."""
    data = out / 'synthetic'
    if not (data / 'test').exists():
        data.mkdir(exist_ok=True)
        for part, images, seed in (('train', 12000, 1), ('test', 500, 2)):
            subprocess.run(
                [build / 'refrain', 'make-dataset', '--classes', '10',
                 '--images', str(images), '--size', '32x32', '--seed',
                 str(seed), data / part], check=True,
                stdout=subprocess.DEVNULL)
    return data


def split_images(data, out):
    """Write lists of the training, held-out and test images."""
    # Their paths begin where they are.
    (out / 'data').symlink_to(data)
    for part in ('train', 'test'):
        (out / part).symlink_to(f'data/{part}')
    for part in ('train', 'test'):
        if not (data / part).is_dir():
            die(f"no directory '{data / part}'")
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
    """All text of this project: its sources and documents."""
    files = [p for d in ('src', 'tools', 'include', 'doc', 'man')
             for p in sorted((top / d).rglob('*'))
             if p.suffix in ('.c', '.h', '.md', '.1', '.3', '.7', '.8')]
    return b''.join(p.read_bytes() for p in files)


def make_text(out, tree):
    """Write records of 8 bytes of context and 32 to predict; every 20th KiB
    is held out."""
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
        self.children = set()
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

    def call(self, words, to):
        """Run it and return its exit status; it ends if we do."""
        child = subprocess.Popen(
            words, stdout=to, env=dict(os.environ, OPENBLAS_NUM_THREADS='1'))
        self.children.add(child)
        try:
            return child.wait()
        finally:
            self.children.discard(child)
            child.kill()
            child.wait()

    def run(self, run, rate, root=None, note=None):
        """Write its output to a file that gets its name when it is complete."""
        path, part = self.path(run), self.path(run).with_suffix('.part')
        begun = time.monotonic()
        words = self.command(run, rate, root)
        with open(part, 'wb') as f:
            status = self.call(words, f)
        with self.lock:
            if status != 0:
                self.failed += 1
                say(f'{run["id"]}: FAILED ({status}): {" ".join(words)}')
                return
            if note:
                with open(part, 'ab') as f:
                    f.write((json.dumps(note) + '\n').encode())
            part.rename(path)
            say(f'{run["id"]}: {brief(read_run(path))}, '
                f'{time.monotonic() - begun:.0f} s')

    # -- Many -----------------------------------------------------------------

    def rate_of(self, run, runs):
        """The rate: a number, or that of the best trial of a group."""
        if 'like' in run:
            return read_run(self.path({'id': run['like']}))['begin']['lr']
        if not isinstance(run['rate'], str):
            return run['rate']
        trials = [(cost(read_run(self.path(r))), r['rate'])
                  for r in runs if r['group'] == run['rate']
                  and self.path(r).exists()]
        if not trials:
            die(f'{run["id"]}: there are no trials {run["rate"]}')
        return min(trials)[1]

    def slow(self, run, runs):
        """Run it alone, on its own mount; see matrix.py."""
        like = read_run(self.path({'id': run['like']}))
        steps = like['reports'][-1]['step']
        run['options']['steps'] = min(steps, run['most'] or steps)
        run['options']['width'] = like['begin']['width']
        run['options']['size'] = like['begin']['size']
        if run['ratio'] is None:
            self.run(run, self.rate_of(run, runs), None,
                     {'event': 'store', 'delay_ms': 0})
            return
        delay = 0
        if run['ratio']:
            control = next(r for r in runs if r['group'] == 'slow-control-e1'
                           and r['stage'] == run['stage'])
            stats = read_run(self.path(control))['end']['stats']
            delay = round(run['ratio'] * stats['t_downstream_ms'])
        with store.mount(self.args.build / 'refrain',
                         (self.out / 'data').resolve(), delay) as root:
            self.run(run, self.rate_of(run, runs), root,
                     {'event': 'store', 'delay_ms': delay})

    def stage(self, stage, runs):
        todo = [r for r in stage if not self.path(r).exists()]
        if 'like' in stage[0]:
            for r in todo:
                self.one_of_stage(r, runs)
            return
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            try:
                for f in [pool.submit(self.one_of_stage, r, runs)
                          for r in todo]:
                    f.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for child in list(self.children):
                    child.kill()
                raise

    def one_of_stage(self, run, runs):
        if time.monotonic() > self.until:
            return
        try:
            if 'like' in run:
                self.slow(run, runs)
            else:
                self.run(run, self.rate_of(run, runs))
        except Exception as e:  # the others go on
            with self.lock:
                self.failed += 1
                say(f'{run["id"]}: {e!r}')


# -- Results ------------------------------------------------------------------

def read_run(path):
    result = {'reports': []}
    for line in map(json.loads, path.read_text().splitlines()):
        event = line.pop('event')
        if event == 'report':
            result['reports'].append(line)
        else:
            result[event] = line
    return result


def cost(result):
    """The rank of a trial when a learning rate is chosen; lower is better."""
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
    """The line of a run: reports are rows, and columns are named once."""
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
        columns = PACE if 'store' in result else LEARNING
        line = {'id': run['id'], 'group': run['group'],
                'begin': result['begin'], 'columns': columns,
                'reports': [[r.get(c) for c in columns]
                            for r in result['reports']], 'end': end}
        if 'store' in result:
            line['store'] = result['store']
        lines.append(json.dumps(line, separators=(',', ':')))
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
                   help='write all results there, a line a run; default '
                   'all.jsonl in --out')
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
    args.build = args.build.resolve()
    if not args.smoke and not args.data and not args.collect \
            and not args.list:
        die('--data is needed, but for --smoke')
    return args


def main():
    # Unmount on termination, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    args = parse()
    args.out.mkdir(parents=True, exist_ok=True)
    stages = matrix.smoke(not args.data) if args.smoke else matrix.whole()
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
    path = args.results or args.out / 'all.jsonl'
    collect(args.out, stages, path)
    if args.smoke:
        for claim, figure, holds in tables.verdicts(
                results.Results([path])):
            say(f'{"yes" if holds else "NO "} {figure:.2f}: {claim}')
            driver.failed += not holds
    return 1 if driver.failed else 0


if __name__ == '__main__':
    sys.exit(main())

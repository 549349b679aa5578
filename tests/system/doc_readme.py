#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a script for bash that runs the code blocks of README.md and
doc/python.md as they stand, in their order.

    doc_readme.py TREE IMAGES > SCRIPT

A line of a block for the shell must succeed. A block in C or Python is a part
of a program; WAYS has what comes before and behind it. A block that WAYS does
not know is an error: say there how it is run."""

import itertools
import pathlib
import shlex
import sys

C_BEGIN = '''#include <refrain/loader.h>
static unsigned long seen;
static void train(const void *data, const void *labels, unsigned count)
{
        seen += data && labels ? count : 0;
}
int main(void)
{
        struct refrain_config c;
        struct refrain_loader *l;
        const struct refrain_batch *b;
'''
C_END = '''        refrain_close(l);
        return seen == 2 * IMAGES ? 0 : 1;
}
'''
SAMPLER_BEGIN = '''from torch.utils.data import DataLoader, RandomSampler
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor
dataset = ImageFolder('/data/imagenet/train', ToTensor())
'''
SAMPLER_END = '''assert order.plan.active
assert sum(len(labels) for images, labels in loader) == IMAGES
assert order.plan.flush(60) and order.plan.left_out == 0, order.plan.error
'''
LOOP_BEGIN = '''seen = 0
def train(data, labels):
    global seen
    seen += len(data)
    assert len(data) == len(labels)
'''
LOOP_END = 'assert seen >= IMAGES - 255, seen\n'
SHARE_BEGIN = 'import refrain\n'
SHARE_END = 'assert next(loader).count == 256\n'
USUAL_BEGIN = '''import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import ImageFolder
from torchvision.transforms import *
torch.distributed.init_process_group('gloo', 'file:///tmp/rendezvous', rank=0,
                                     world_size=1)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
'''
STEP = '''path, device = '/data/imagenet/train', 'cpu'
def step(images, labels):
    assert images.shape == (256, 3, 224, 224) and labels.shape == (256,)
    raise SystemExit(0)
'''
STAGE_BEGIN = '''from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import *
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
'''
ECHO_BEGIN = '''import refrain
decoded, served = range(1000), []
def augment(example, seed):
    return example, seed
def train(example):
    served.append(example)
'''
ECHO_END = '''assert len(set(served)) == 4000
assert sorted(x for x, _ in served) == sorted(4 * list(decoded))
'''
MADE = 'refrain make-dataset --classes 3 --images 64 --size 96x72 '
MAKE_COCO = (MADE + '--boxes coco && sudo mkdir -p /data/coco && '
             'sudo mv coco/images /data/coco/train2017 && sudo mv '
             'coco/instances.json /data/coco/instances_train2017.json')
COCO_END = '''assert loader.annotation_classes == ['disc', 'ring', 'box']
assert batch["boxes"].padded().shape[0] == 32
assert batch.step == 60 * 4 - 1
'''
MAKE_ROADS = MADE + '--masks roads && sudo mv roads /data/roads'
ROADS_END = '''assert batch["mask"].values.shape == (16, 256, 512)
assert batch.data.shape == (16, 256, 512, 3)
'''
MAKE_PAIRS = (MADE + '--yolo pairs && mv pairs/labels/* pairs/images && '
              'sudo mkdir -p /data/pairs && '
              'sudo tar -C pairs/images -cf /data/pairs/0.tar .')
PAIRS_END = 'assert len(texts) == 16 and any(texts)\n'
NOT_REACHED = 'raise AssertionError\n'
NEEDS_TORCH = 'sudo apt-get install -qq python3-torch python3-torchvision'


def shell(lines):
    """Each line is typed, and must succeed."""
    for line in lines:
        yield 'typed %s' % shlex.quote(line)
        yield line
        yield 'worked'


def file_of(name, text):
    """Writes a file."""
    return 'cat >%s <<\'END OF FILE\'\n%sEND OF FILE' % (name, text)


def c(lines, begin, end):
    """A part of a program in C."""
    yield file_of('block.c', begin + '\n'.join(lines) + '\n' + end)
    yield from shell(
        ['cc block.c -o block $(pkg-config --cflags --libs refrain)',
         './block'])


def python(lines, begin, end, before=None):
    """A part of a program in Python, after a command for the shell."""
    yield file_of('block.py', begin + '\n'.join(lines) + '\n' + end)
    yield from shell(([before] if before else []) + ['python block.py'])


def four_jobs(lines, begin, end):
    """A part of each of four programs in Python that run at once."""
    yield file_of('block.py', begin + '\n'.join(lines) + '\n' + end)
    yield from shell(
        ['seq 4 | xargs -P 4 -I{} timeout 300 python block.py'])


def not_run(_lines, _why):
    """A block that cannot run as it stands."""
    return ()


# The first line of each block, in the order of the text, and how it is run.
WAYS = [
    ('README.md', [
        ('tools/quickstart', shell),
        ('sudo apt build-dep', not_run, 'package-debian.sh does that'),
        ('podman build ', not_run, 'package-image.sh does that'),
        ('autoreconf ', shell),
        ('sudo apt install python3-dev', shell),
        ('mkdir -p build-wheel', shell),
        ('refrain mount ', shell),
        ('refrain mount ', shell),
        ('from refrain import PlannedSampler', python, SAMPLER_BEGIN,
         SAMPLER_END, NEEDS_TORCH),
        ('refrain load ', shell),
        ('refrain_config_init(', c, C_BEGIN, C_END),
        ('import refrain, torch', python, LOOP_BEGIN, LOOP_END),
        ('refrain analyze ', shell),
        ('reader -> kernel', not_run, 'it is a drawing')]),
    ('doc/python.md', [
        ('import refrain, torch', python, LOOP_BEGIN, LOOP_END),
        ('sudo apt install python3-dev', shell),
        ('import refrain', python, '', COCO_END, MAKE_COCO),
        ('import refrain', python, '', ROADS_END, MAKE_ROADS),
        ('import refrain', python, '', PAIRS_END, MAKE_PAIRS),
        ('loader = refrain.Loader(', four_jobs, SHARE_BEGIN, SHARE_END),
        ('data = ImageFolder(', python, USUAL_BEGIN + STEP, NOT_REACHED),
        ('import refrain.torch', python, STEP, NOT_REACHED),
        ('for example in refrain.echo(', python, ECHO_BEGIN, ECHO_END),
        ('from refrain.torch import EchoDataset', python,
         STAGE_BEGIN + STEP, NOT_REACHED),
        ('REFRAIN_TEST_BATCHES=', not_run, 'it takes hours')]),
]


def is_code(numbered):
    """Is this line of a document indented, or between such lines?"""
    return not numbered[1] or numbered[1].startswith('    ')


def blocks(path):
    """Each block of a document, as (number of its first line, lines)."""
    numbered = enumerate(path.read_text().splitlines(), 1)
    for code, group in itertools.groupby(numbered, is_code):
        lines = list(group)
        while lines and not lines[0][1]:
            del lines[0]
        while lines and not lines[-1][1]:
            del lines[-1]
        if code and lines:
            yield lines[0][0], [line[4:] for _, line in lines]


def main(tree, images):
    """Print the script."""
    print('set -u')
    print('typed() { echo "\\$ $1"; last=$1; }')
    print('worked() { status=$?; [ $status -eq 0 ] || {\n'
          '\techo "FAILED with $status: $last"; exit 1; }; }')
    for name, ways in WAYS:
        got = list(blocks(pathlib.Path(tree) / name))
        for (number, lines), way in zip(got, ways):
            if not lines[0].startswith(way[0]):
                sys.exit('%s:%d: doc_readme.py does not know how to run the block '
                         'that begins with %r' % (name, number, lines[0]))
            print('echo "== %s:%d"' % (name, number))
            for text in way[1](lines, *way[2:]):
                print(text.replace('IMAGES', images))
        if len(got) != len(ways):
            sys.exit('%s has %d blocks, doc_readme.py knows %d' %
                     (name, len(got), len(ways)))
    print('echo "== all blocks have run"')


main(*sys.argv[1:])

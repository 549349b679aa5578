#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the example in the documentation of tools/refrain_plan.py, with
another path of the dataset, other numbers, and other code for a batch."""
import importlib
import json
import os
import subprocess
import sys
import types

tools, refrain, mount, bare = sys.argv[1:]
sys.path.insert(0, tools)

import torch  # noqa: E402
import torchvision  # noqa: E402

helper = importlib.import_module('refrain_plan')
EPOCHS = 2


def example():
    """Return its text: the first block of the module's documentation."""
    lines = helper.__doc__.split('\n')
    begin = next(i for i, line in enumerate(lines)
                 if line.startswith('    import refrain_plan'))
    end = next(i for i in range(begin, len(lines))
               if lines[i] and not lines[i].startswith('    '))
    text = '\n'.join(line[4:] for line in lines[begin:end])
    for old, new in (("'/data/imagenet/train', ...", 'top, transform'),
                     ('range(90)', 'range(%d)' % EPOCHS),
                     ('batch=256', 'batch=16'),
                     ('batch_size=256', 'batch_size=16'),
                     ('num_workers=8', 'num_workers=2'),
                     ('        ...', '        take(images, labels)')):
        assert text.count(old) == 1, (old, text)
        text = text.replace(old, new)
    return text


def run(top, module):
    """Return everything that the example yields, and its names."""
    sys.modules['refrain_plan'] = module
    batches = []
    torch.manual_seed(7)
    names = {
        'torch': torch, 'torchvision': torchvision, 'top': top,
        'transform': torchvision.transforms.ToTensor(),
        'take': lambda images, labels: batches.append(
            (float(images.double().sum()), labels.tolist()))}
    exec(compile(example(), 'example', 'exec'), names)
    return batches, names['order']


def issued():
    out = subprocess.run([refrain, 'status', mount, '--json'], check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)['prefetch_issued']


# Replace the helper by one that returns its arguments unchanged.
without = types.ModuleType('refrain_plan')
without.PlannedSampler = lambda sampler, paths, **_: sampler

plain, _ = run(bare, without)
assert len(plain) == EPOCHS * 8 and plain[:8] != plain[8:], len(plain)
batches, order = run(mount, helper)
assert batches == plain
assert order.plan.active and order.plan.error is None, order.plan.error
assert order.plan.flush(10) and order.plan.left_out == 0
order.plan.close()
ahead = issued()
assert ahead > 0
assert run(mount, without)[0] == plain
assert issued() == ahead, issued()
batches, order = run(bare, helper)
assert batches == plain and not order.plan.active
print('torch: %s, %d batches, %d files fetched ahead' % (
    torch.__version__, len(batches), ahead))
sys.stdout.flush()
# Skip the end of the interpreter, which takes longer with PyTorch than
# everything else here.
os._exit(0)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train a small network on a directory of JPEGs, with PyTorch's DataLoader and
with refrain at several echo factors, and print one table.

    examples/train.py TRAIN TEST [--size 32] [--epochs 4] [--batch 64]
                      [--echo 1 2 4] [--workers 2]

TRAIN and TEST have a directory of images for each class, such as CIFAR-10 as
JPEGs, or the output of `refrain make-dataset`. All runs read the same number of
fresh images. With echoes they make more steps with them.
"""
import argparse
import time

import torch
from torch import nn

import refrain.torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def network(classes):
    """Three convolutions, a mean over the image, and a linear layer."""
    def block(a, b):
        return [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b),
                nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 64),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, classes))


def data_loader(a):
    """The usual PyTorch DataLoader."""
    from torchvision import datasets, transforms
    data = datasets.ImageFolder(a.train, transforms.Compose([
        transforms.RandomResizedCrop(a.size, scale=(0.5, 1)),
        transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize(MEAN, STD)]))
    return torch.utils.data.DataLoader(
        data, a.batch, shuffle=True, drop_last=True, num_workers=a.workers,
        persistent_workers=a.workers > 0)


def refrain_data(a, echo):
    """The replacement for the DataLoader."""
    return refrain.torch.IterableDataset(
        a.train, batch=a.batch, echo=echo, epochs=a.epochs, size=a.size,
        area_min=0.5, type='f32', layout='nchw', threads=max(a.workers, 1),
        mean=MEAN, std=STD)


def accuracy(model, a):
    """Accuracy on the test images."""
    model.eval()
    right = count = 0
    with torch.no_grad():
        for images, labels, mask in refrain.torch.EvalDataset(
                a.test, batch=a.batch, size=a.size, type='f32',
                layout='nchw'):
            hits = model(images).argmax(1) == labels
            right += int(hits[mask].sum())
            count += int(mask.sum())
            del images, labels
    model.train()
    return right / count


def train(a, data, classes):
    """Train a new network; returns (steps, seconds, accuracy)."""
    torch.manual_seed(a.seed)
    model = network(classes)
    optimiser = torch.optim.SGD(model.parameters(), a.rate, momentum=0.9,
                                weight_decay=5e-4)
    loss = nn.CrossEntropyLoss()
    steps, begun = 0, time.monotonic()
    for _ in range(a.epochs):
        for images, labels in data:
            optimiser.zero_grad()
            loss(model(images), labels).backward()
            optimiser.step()
            steps += 1
            del images, labels
    return steps, time.monotonic() - begun, accuracy(model, a)


def arguments():
    """Parse the command line."""
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('train')
    p.add_argument('test')
    p.add_argument('--size', type=int, default=32)
    p.add_argument('--epochs', type=int, default=4)
    p.add_argument('--batch', type=int, default=64)
    p.add_argument('--echo', nargs='*', default=['1', '2', '4'])
    p.add_argument('--rate', type=float, default=0.05)
    p.add_argument('--workers', type=int, default=2)
    p.add_argument('--seed', type=int, default=0)
    return p.parse_args()


def main():
    """Do all runs and print the table."""
    a = arguments()
    with refrain.Loader(a.train, batch=1, size=8) as loader:
        classes = len(loader.classes)
    rows = []
    try:
        rows.append(('DataLoader', *train(a, data_loader(a), classes)))
    except ImportError:
        print('DataLoader is left out: torchvision is not installed')
    for echo in a.echo:
        data = refrain_data(a, echo)
        rows.append(('refrain, e = ' + echo, *train(a, data, classes)))
        data.close()
    print('%-16s %7s %9s %12s %10s' % ('data', 'steps', 'seconds',
                                       'images/s', 'accuracy'))
    for name, steps, seconds, right in rows:
        print('%-16s %7d %9.1f %12.0f %9.1f %%' % (
            name, steps, seconds, steps * a.batch / seconds, 100 * right))


if __name__ == '__main__':
    main()

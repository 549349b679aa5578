#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time PyTorch's DataLoader with torchvision's ImageFolder and transforms.

    peer_torchvision.py FOLDER WORKERS EPOCHS [u8]

One line of JSON: processor time of an image in this process and its workers,
from the second epoch on; the first one starts the workers.
"""
import json
import sys
import time

import torch
from torchvision import datasets, transforms

import peer_usage

BATCH = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def loader_of(folder, workers, as_bytes):
    steps = [transforms.RandomResizedCrop(224),
             transforms.RandomHorizontalFlip()]
    if as_bytes:
        steps.append(transforms.PILToTensor())
    else:
        steps += [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    files = datasets.ImageFolder(folder, transforms.Compose(steps))
    return torch.utils.data.DataLoader(
        files, batch_size=BATCH, shuffle=True, num_workers=workers,
        persistent_workers=workers > 0)


def main():
    folder, workers, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    loader = loader_of(folder, workers, "u8" in sys.argv[4:])
    images = 0
    for epoch in range(epochs + 1):
        if epoch == 1:
            cpu, wall = peer_usage.cpu_s(), time.monotonic()
        for batch, _ in loader:
            images += len(batch) if epoch else 0
    cpu, wall = peer_usage.cpu_s() - cpu, time.monotonic() - wall
    print(json.dumps({
        "what": "torchvision", "workers": workers, "images": images,
        "cpu_ms": cpu * 1e3 / images, "wall_ms": wall * 1e3 / images,
        "peak_bytes": peer_usage.peak_bytes()}))


main()

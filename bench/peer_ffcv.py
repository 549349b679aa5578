#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time FFCV on its own copy of a folder of images.

    peer_ffcv.py write FOLDER FILE          # JPEG, 90 %, at most 512 pixels
    peer_ffcv.py read FILE EPOCHS LAYOUT    # u8, nhwc or nchw (both f32)

Reading prints one line of JSON: processor time of an image from the second
epoch on; the first one compiles. FFCV keeps 8 bits and leaves normalising to a
GPU, so "u8" is what it is at its best, and "nhwc" (its channels_last) what it
makes of floats without a copy.
"""
import json
import sys
import time

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, ToTensor,
                             ToTorchImage)
from ffcv.writer import DatasetWriter
from torchvision.datasets import ImageFolder

import peer_usage

BATCH = 64
MEAN = np.array((0.485, 0.456, 0.406)) * 255
STD = np.array((0.229, 0.224, 0.225)) * 255


def write(folder, path):
    writer = DatasetWriter(path, {
        "image": RGBImageField(write_mode="jpg", max_resolution=512,
                               jpeg_quality=90),
        "label": IntField()}, num_workers=1)
    writer.from_indexed_dataset(ImageFolder(folder))


def loader_of(path, layout):
    image = [RandomResizedCropRGBImageDecoder((224, 224)),
             RandomHorizontalFlip()]
    if layout != "u8":
        image.append(NormalizeImage(MEAN, STD, np.float32))
    image += [ToTensor(), ToTorchImage(channels_last=layout != "nchw")]
    return Loader(path, batch_size=BATCH, num_workers=1, os_cache=True,
                  order=OrderOption.RANDOM, drop_last=False,
                  pipelines={"image": image,
                             "label": [IntDecoder(), ToTensor()]})


def read(path, epochs, layout):
    loader = loader_of(path, layout)
    images = 0
    for epoch in range(epochs + 1):
        if epoch == 1:
            cpu, wall = peer_usage.cpu_s(), time.monotonic()
        for batch, _ in loader:
            images += len(batch) if epoch else 0
    cpu, wall = peer_usage.cpu_s() - cpu, time.monotonic() - wall
    print(json.dumps({
        "what": "ffcv", "layout": layout, "images": images,
        "cpu_ms": cpu * 1e3 / images, "wall_ms": wall * 1e3 / images,
        "peak_bytes": peer_usage.peak_bytes()}))


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3])
else:
    read(sys.argv[2], int(sys.argv[3]), sys.argv[4])
